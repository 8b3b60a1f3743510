/* banned.h: calls that do not compile here. Forced into every file by the build; the headers that
 * declare the calls come first so that only our own uses fail. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(call) sorry_##call##_is_banned_see_base_banned_h
#undef strcpy
#define strcpy(to, from) BANNED(strcpy)
#undef strcat
#define strcat(to, from) BANNED(strcat)
#undef strncpy
#define strncpy(to, from, n) BANNED(strncpy)
#undef strncat
#define strncat(to, from, n) BANNED(strncat)
#undef strtok
#define strtok(text, separators) BANNED(strtok)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef atoi
#define atoi(text) BANNED(atoi)
#undef atol
#define atol(text) BANNED(atol)
#undef atof
#define atof(text) BANNED(atof)
#undef gmtime
#define gmtime(t) BANNED(gmtime)
#undef localtime
#define localtime(t) BANNED(localtime)
#undef ctime
#define ctime(t) BANNED(ctime)
#endif
