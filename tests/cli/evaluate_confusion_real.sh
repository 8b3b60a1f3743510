# The two thresholds of a method on the 129 test slides of CAMELYON16.
table=$SHARED/data/camelyon16/reference.csv
[ -f "$table" ] || { echo "no $table" >&2; exit 77; }
microtome evaluate confusion "$table" --slide slide_name --label is_tumor --positive Tumor --score Method_I
microtome evaluate confusion "$table" --slide slide_name --label truth --score Method_I \
    --threshold 0.0682679 --csv | tail -n 1
