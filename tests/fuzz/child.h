/* child.h: a try in a process of its own, for what leads into a library that may crash by itself.
 */
#ifndef TESTS_FUZZ_CHILD_H
#define TESTS_FUZZ_CHILD_H

/* Runs try(arg) in a child; what it counts in fuzz_taken counts here. Where the child dies with a
 * function of `library` (a part of its file's name) on its stack, that is the library's: it is
 * counted in fuzz_foreign_crashes. Any other death ends this process in the same way. */
extern long fuzz_foreign_crashes;
void fuzz_in_child(void (*attempt)(void *arg), void *arg, const char *library);
#endif
