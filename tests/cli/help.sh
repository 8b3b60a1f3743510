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
microtome --describe-nothing
echo "unknown description: $?"
microtome phantm
