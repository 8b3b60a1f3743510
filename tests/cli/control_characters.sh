# Names that hold escape sequences: none of them reaches the terminal, neither on standard output
# nor on standard error; JSON stays JSON.
microtome phantom -q -o cohort --slides 1 --size 1024 || exit
evil=$(printf 'a\033]0;owned\007\302\233b\377')
mkdir "dir$evil"
mv cohort/slides/*.tiff "$evil.tiff"
echo "not a slide" >"bad$evil.tiff"
printf 'slide,mpp\n"%s.tiff",0.2\033[2J5\n' "$evil" >list.csv
microtome info "$evil.tiff" "bad$evil.tiff"
microtome info --json "$evil.tiff" | python3 -c 'import json, sys; print(ascii(json.load(sys.stdin)[0]["name"]))'
microtome tissue -o masks "$evil.tiff" "bad$evil.tiff" 2>&1 | grep -v "tissue: 2 slides"
microtome extract -q -o patches --dense "$evil.tiff" | tail -n 1
microtome extract -q -o patches --dense "dir$evil"
microtome info list.csv
microtome info "--$evil"
microtome "$evil"
cp "$evil.tiff" "$(printf 'line\nbreak.tiff')"
microtome info "$(printf 'line\nbreak.tiff')"
