# The program describes itself; a wrong command names the nearest one.
microtome --version
microtome --help | head -n 1
microtome 2>/dev/null
echo "no command: $?"
for command in $(microtome --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    microtome "$command" --help >help.txt || echo "$command --help: $?"
    grep -q '^Example:' help.txt || echo "$command --help shows no example"
done
microtome --describe-man >man.1 && grep -c '^.TH MICROTOME' man.1
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
