# The published areas of three methods on the 129 test slides of CAMELYON16.
table=$SHARED/data/camelyon16/reference.csv
[ -f "$table" ] || { echo "no $table" >&2; exit 77; }
microtome evaluate roc "$table" --slide slide_name --label truth --bootstrap 200 --csv \
    --score Method_I --score Method_II_noise_only --score Method_II_noise_norm |
    cut -d, -f1-4
microtome evaluate roc "$table" --slide slide_name --label is_tumor --positive Tumor \
    --score Method_I --bootstrap 0
