# Wrong options and operands name themselves.
microtome tissue a.svs -o out --method otsu
microtome tissue a.svs
microtome tissue a.svs -o out --downsample 0
microtome tissue a.svs -o out --use-value
microtome tissue nowhere.svs -o out
