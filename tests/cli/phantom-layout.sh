# Cords that lie parallel or crossed: labels in the list, no annotation, and patches with the slide's label.
microtome phantom -o cords --slides 3 --size 2048 --seed 5 -q --layout cords --pen none
cat cords/slides.csv
(cd cords && find . -type f | sort)
microtome extract cords/slides.csv -o patches --dense --patch 256 --margin 0 --mpp 0.5 \
    --label-rule slide --class-map '{classes: [crossed, parallel]}' -q
echo "--- a folder has one layout"
microtome phantom -o cords --slides 3 --size 2048 --seed 5 --pen none; echo "$?"
microtome phantom -o other --slides 1 --layout rows; echo "$?"
ls
