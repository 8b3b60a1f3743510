# explain words: pages on which texts stay texts, whatever is in them, a table of the weights, sums that are what they
# should be; windows and texts that are cut; bad input is named.
python3 - <<'P'
import csv, random
draw = random.Random(5)
words = ["alpha", "beta", "gamma", "delta", "kappa", "sigma", "omega", "lambda"]
def row(i, label, text):
    return ["id<%d>" % i, "P%d" % i, label, text]
with open("train.csv", "w", newline="") as stream:
    rows = csv.writer(stream)
    rows.writerow(["id", "patient", "label", "text"])
    for i in range(24):
        text = [draw.choice(words) for _ in range(draw.randint(5, 12))] + [["zeta", "theta"][i % 2]] * 2
        draw.shuffle(text)
        rows.writerow(row(i, ["<b>a", "b&c"][i % 2], " ".join(text)))
with open("test.csv", "w", newline="") as stream:
    rows = csv.writer(stream)
    rows.writerow(["id", "label", "text"])
    rows.writerow(["<script>x</script>", "<b>a", 'zeta <script src="http://e.org/x.js">alert(1)</script> & "beta" \'gamma\''])
    rows.writerow(["two", "", "theta\n\n  delta\u00e9, " + "alpha " * 40 + "zeta </div>"])
P
cat >run.yaml <<'Y'
network: { name: bert_tiny }
data: { train: train.csv, val_fraction: 0.25, text: text, id: id, max_tokens: 24, long: windows, vocabulary: 100, workers: 1 }
train: { epochs: 6, batch: 6 }
optimizer: { name: adamw }
schedule: { learning_rate: 0.002 }
Y
microtome train run.yaml -q --threads 1 -o run >/dev/null || exit
words() { microtome explain words "$@" -q --threads 1 || echo "exit $?"; }
words test.csv --model run -o words --json | grep -o '"texts.*\|"words.*'
ls words words/texts
cat >check.py <<'P'
import csv, html.parser, json, sys
class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.texts, self.open = set(), [], [], False
        self.feed(text)
    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        self.links += [name for name, _ in attributes if name.startswith("on")]
        if tag == "div":
            self.open = True
            self.texts.append("")
    def handle_endtag(self, tag):
        self.open = self.open and tag != "div"
    def handle_data(self, data):
        if self.open:
            self.texts[-1] += data
folder, methods = sys.argv[1], int(sys.argv[2])
rows = list(csv.DictReader(open("test.csv", newline="")))
for i, row in enumerate(rows):
    page = Page(open("%s/texts/%d.html" % (folder, i + 1)).read())
    assert page.tags <= set("html meta style title h1 h2 p a table tr th td bdi div b s".split()), page.tags
    assert page.links == ["../index.html"], page.links
    assert page.texts == [row["text"].rstrip()] * methods, page.texts
index = Page(open(folder + "/index.html").read())
assert index.links == ["texts/1.html", "texts/2.html"], index.links
print("texts are as they were, no scripts, no resources")
P
python3 check.py words 2
python3 - <<'P'
import csv, re
rows, texts = list(csv.DictReader(open("words/words.csv", newline=""))), list(csv.DictReader(open("test.csv", newline="")))
for i, text in enumerate(texts):
    mine = [row for row in rows if row["id"] == text["id"]]
    assert "".join(row["word"] for row in mine) == "".join(text["text"].split()), mine
    page = open("words/texts/%d.html" % (i + 1)).read()
    found = re.search(r"add up to (\S+); the logit is (\S+), that of a text of padding (\S+): a difference of (\S+)\.", page)
    total, logit, blank, between = map(float, found.groups())
    weights = [float(row["gradients"]) for row in mine]
    assert abs(sum(weights) - total) < 1e-4 and abs(logit - blank - between) < 2e-4, (sum(weights), total)
    print("adds up" if abs(total - between) < 0.01 * abs(between) + 1e-3 else "%g, not %g" % (total, between))
    assert all(row["read"] == "yes" for row in mine) and 0 < sum(float(row["attention"]) for row in mine) <= 1.00001
P
echo "--- the scores of predict"
microtome predict test.csv --model run -o scores -q --threads 1 >/dev/null
python3 - <<'P'
import csv, re
for i, row in enumerate(csv.DictReader(open("scores/scores.csv", newline=""))):
    page = open("words/texts/%d.html" % (i + 1)).read()
    shown = [float(x) for x in re.findall(r'</bdi></td><td class="n">([0-9.]+)</td></tr>', page)]
    print("equal" if max(abs(a - float(row[c])) for a, c in zip(shown, ["score_<b>a", "score_b&c"])) < 1e-4 else (shown, row))
P
echo "--- other choices"
words test.csv --model run/model.safetensors -o one --method attention --class 'b&c'
python3 check.py one 1
head -n 2 one/words.csv | cut -d, -f 2-4
sed 's/"windows"/"truncate"/; /window_overlap/d' run/config.json >card.json && cp card.json run/config.json
words test.csv --model run -o cut --method gradients --ig-steps 3 | grep -o '^[^;]*'
grep -c ',no,' cut/words.csv
words test.csv --model run -o cut
words test.csv --model run -o cut --overwrite | grep -o '^[^;]*'
echo "--- bad input"
words test.csv -o no
words test.csv train.csv --model run -o no
words test.csv --model run -o no --method gradcam
words test.csv --model run -o no --class c
words absent.csv --model run -o no
words test.csv --model absent -o no
printf 'id,words\n1,a\n' >other.csv
words other.csv --model run -o no
printf 'id,text\n1,alpha\n2,\n' >empty.csv
words empty.csv --model run -o no
[ ! -e no/index.html ] && [ ! -e no/words.csv ] && echo "nothing is left"
