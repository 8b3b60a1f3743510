# Lesions by size, types of slides and pN stages of patients: from heatmaps, annotations and types; their evaluation.
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
make() { python3 "$SOURCE/tests/cli/make_heatmap.py" "$@"; } # cells of 4 um
make maps/patient_000_node_0 640 60 normal,tumor 20,20,600,20,0.95
make maps/patient_000_node_1 140 140 normal,tumor 20,20,100,100,0.97 130,130,5,5,0.99
make maps/patient_000_node_2 60 60 normal,tumor
make maps/patient_001_node_0 60 60 normal,tumor 20,20,20,20,0.95
make maps/patient_001_node_1 60 60 normal,tumor 20,20,20,20,0.7
make maps/patient_002_node_0 60 60 normal,tumor
microtome classify stage maps -o out -q
cat out/slides.csv out/patients.csv out/stages.csv out/lesions.csv
microtome classify stage maps --json -q
microtome classify stage maps -q --threshold 0.6 --min-size 50 --itc 80 --macro 300 | cut -c 1-30

echo "--- a slide list: nodes of two slides"
cat >list.csv <<'END'
slide,patient,node
patient_000_node_0.tif,anna,1
patient_000_node_1.tif,anna,1
patient_000_node_2.tif,anna,2
patient_001_node_0.tif,ben,
patient_001_node_1.tif,ben,
patient_002_node_0.tif,ben,
END
microtome classify stage maps --slides list.csv -q
echo "--- annotations"
mkdir drawn
echo '{"positive":[{"name":"t","vertices":[[1000,1000],[9400,1000],[9400,1400],[1000,1400]]}],"negative":[]}' >drawn/patient_000_node_0.json
echo '{"positive":[{"name":"t","vertices":[[0,0],[1000,0],[1000,800],[0,800]]},{"name":"u","vertices":[[1200,0],[2200,0],[2200,800],[1200,800]]}],"negative":[{"name":"hole","vertices":[[400,200],[600,200],[600,500],[400,500]]}]}' >drawn/patient_001_node_0.json
microtome classify stage drawn -q -o truth && cut -d, -f1-6 truth/slides.csv
cat truth/lesions.csv
microtome classify stage drawn -q --join 20 --mpp 0.1 --json | tail -n 4
printf 'slide,annotation,patient,node,mpp\n%s\n%s\n%s\n' a.tif,drawn/patient_000_node_0.json,x,1,0.1 b.tif,,x,2, c.tif,drawn/patient_001_node_0.json,y,1, >annotated.csv
microtome classify stage annotated.csv -q
sed 's/slide,patient/slide,patient/;s/anna/carla/' list.csv >others.csv
microtome classify stage drawn --slides others.csv -q

echo "--- types of slides"
microtome classify stage out/stages.csv -q -o again && cmp out/stages.csv again/stages.csv && cmp out/patients.csv again/patients.csv && ls again
microtome classify stage out/slides.csv -q | sed -n 1,2p
(echo slide,type,patient; for i in 1 2 3 4 5 6 7 8 9 10; do echo s$i,macro,many; done) >many.csv
microtome classify stage many.csv

echo "--- bad input"
make other/a 60 60 normal,tumor
microtome classify stage other -q
microtome classify stage maps other --slides list.csv -q
sed 's/ben,$/,/' list.csv >bad.csv && microtome classify stage maps --slides bad.csv -q
cut -d, -f1,3 list.csv >bad.csv && microtome classify stage maps --slides bad.csv -q
echo patient_000_node_9.tif,anna,3 | cat list.csv - >more.csv
microtome classify stage maps --slides more.csv -q
microtome classify stage maps --slides more.csv -q --allow-missing | sed -n 1,2p
microtome classify stage maps --itc 300 --macro 200
mkdir two && cp -r maps/patient_002_node_0 two/
microtome classify stage maps two -q
printf 'slide,type\na_node_1,mega\n' >bad.csv && microtome classify stage bad.csv
printf 'slide,kind\na_node_1,itc\n' >bad.csv && microtome classify stage bad.csv
printf 'patient,stage\na.zip,pN1\n' >bad.csv && microtome classify stage bad.csv
printf 'slide,type\na_node_1,itc\na_node_1.tif,itc\n' >bad.csv && microtome classify stage bad.csv
mkdir empty && microtome classify stage empty
microtome classify stage absent.csv
make number/patient_0_node_0 60 60 normal,tumor && head -c 500 number/patient_0_node_0/heatmap.npy >cut && mv cut number/patient_0_node_0/heatmap.npy
microtome classify stage number -q
