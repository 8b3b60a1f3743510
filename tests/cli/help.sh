# The program describes itself; a wrong command names the nearest one.
microtome --version
microtome --help | sed -n 1p
microtome 2>/dev/null
echo "no command: $?"
for command in $(microtome --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    microtome "$command" --help >help.txt || echo "$command --help: $?"
    grep -q '^Example:' help.txt || echo "$command --help shows no example"
done
microtome --describe-man >man.1 && grep -c '^.TH MICROTOME' man.1
for command in $(microtome --describe-commands); do
    grep -q "^.BR microtome.-${command//-/.-} (1)" man.1 || echo "$command is not in microtome(1)"
    microtome "--describe-man-$command" >page.1 || echo "$command has no man page"
    if command -v man >/dev/null; then
        warnings=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z ./page.1 2>&1 >/dev/null)
        [ -z "$warnings" ] || echo "$command: $warnings"
    fi
done
microtome --describe-completion >bash.sh && bash -n bash.sh && echo completion parses
complete_words() {
    COMP_WORDS=(microtome "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _microtome
    echo "${COMPREPLY[@]}"
}
. ./bash.sh
complete_words ti
complete_words extract --lab
complete_words extract --layout c
complete_words extract --layout clam man
microtome --describe-nothing
echo "unknown description: $?"
microtome phantm
