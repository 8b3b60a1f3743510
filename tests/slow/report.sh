#!/usr/bin/env bash
# The page of `microtome report` in a real browser (Debian's chromium, headless): pictures load,
# controls work, hostile names run nothing, text can be read in light and in dark, and nothing
# overflows on a phone. Leaves screenshots in SCRATCH/report. Exit 77: skipped.
set -u
fail() { echo "$1"; exit 1; }
command -v chromium >/dev/null || { echo "skipped: chromium is not installed"; exit 77; }
microtome=${MICROTOME:?}
work=${SCRATCH:?}/report
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1

"$microtome" phantom -o cohort --slides 2 --size 2048 --seed 3 --quiet || fail "phantom"
hostile="a<img src=x onerror=\"document.title='taken'\">&'b"
mv cohort/slides/patient_000_node_1.tiff "cohort/slides/$hostile.tiff" || fail "rename"
"$microtome" predict cohort/slides --network scan_tiny --init-seed 1 --stride 64 --export none \
    -o results/heatmaps --quiet >/dev/null || fail "predict"
first=patient_000_node_0
mkdir three && cp cohort/slides/$first.tiff three/third.tiff
"$microtome" predict three --network scan_tiny --classes 3 --init-seed 1 --stride 64 --export none \
    -o results/three --quiet >/dev/null || fail "predict three classes"
printf 'truth,class0,class1,class2\nclass0,9,1,0\nclass1,0,5,2\nclass2,1,0,7\n' >results/three/confusion.csv
mkdir -p results/lesions results/model
printf 'score,x,y\n0.9,700,800\n0.4,1200,300\n' >results/lesions/$first.csv
printf 'slide,score,label\n%s,0.9,tumor\n"a<img src=x onerror=""document.title=%staken%s"">&%sb",0.2,"<b onclick=1>"\n' \
    $first "'" "'" "'" >results/scores.csv
printf 'curve,false_positive_rate,true_positive_rate,threshold\nforest,0,0,inf\nforest,0,1,0.9\nforest,1,1,0\n' >results/roc.csv
printf 'curve,false_positives_per_slide,sensitivity,threshold\nforest,0,0,1\nforest,0.5,0.8,0.4\nforest,4,0.9,0\n' >results/froc.csv
printf 'epoch,train_loss,val_loss,val_auc\n1,0.7,0.6,0.8\n2,0.5,0.55,0.9\n' >results/model/metrics.csv
printf 'slide,label,annotation\nslides/%s.tiff,tumor,annotations/%s.xml\n' $first $first >results/list.csv
cp -r cohort/annotations results/annotations
# From another folder: slides are found by the paths that the run recorded.
(cd / && "$microtome" report "$work/results" -o "$work/page" --title "Report & <title>" --quiet) || fail "report"
! grep -o 'class="problem">[^<]*' page/index.html || fail "a problem is told"

# The checks run within the page and leave their findings in it.
sed '/<\/body>/d; /<\/html>/d' page/index.html >page/check.html
cat >>page/check.html <<'HTML'
<script>
window.addEventListener('load', function () {
  const found = [];
  const want = (ok, words) => { if (!ok) found.push(words); };
  look(want).catch(e => found.push(String(e))).then(() => {
    document.documentElement.dataset.findings = found.length ? found.join(' | ') : 'all is well';
    if (parent !== window) parent.postMessage(Object.assign({}, document.documentElement.dataset), '*');
  });
});
async function look(want) {
  document.querySelectorAll('.slide').forEach(s => s.style.contentVisibility = 'visible');
  const images = Array.from(document.images);
  images.forEach(i => i.loading = 'eager');
  for (let wait = 0; wait < 100 && !images.every(i => i.complete); wait++)
    await new Promise(done => setTimeout(done, 100));
  images.forEach(i => want(i.complete && i.naturalWidth > 0, 'not loaded: ' + i.src));
  want(images.length >= 20, 'only ' + images.length + ' pictures');
  want(images.every(i => i.hasAttribute('alt')), 'a picture without alt');
  want(document.title === 'Report & <title>', 'title: ' + document.title);
  want(document.querySelectorAll('article').length === 3, 'not three slides');
  want(document.querySelector('.slide h3 bdi').textContent.startsWith('a<img'), 'name is not text');
  want(!document.querySelector('[onerror],[onclick]'), 'markup came through');

  const slider = document.querySelector('[data-opacity]');
  const heat = slider.closest('figure').querySelector('.heat');
  slider.value = 30;
  slider.dispatchEvent(new Event('input'));
  want(getComputedStyle(heat).opacity === '0.3', 'slider: ' + getComputedStyle(heat).opacity);
  const box = document.querySelector('[data-layer=lesions]');
  const marks = box.closest('figure').querySelector('.lesions');
  box.click();
  want(getComputedStyle(marks).display === 'none', 'lesions cannot be hidden');
  box.click();
  want(getComputedStyle(marks).display !== 'none', 'lesions do not come back');

  const choice = document.querySelector('[data-pictures]'), slide = choice.closest('article');
  const beside = slide.querySelector('.beside'), over = slide.querySelector('.heat');
  const shown = kind => getComputedStyle(slide.querySelector(kind)).display !== 'none';
  want(document.querySelectorAll('[data-pictures]').length === 1, 'not one slide of many classes');
  want(shown('.of-classes') && !shown('.of-score'), 'not the legend of classes');
  want(slide.querySelectorAll('.of-classes .swatch').length === 3, 'not three colours');
  choice.value = '-2';
  choice.dispatchEvent(new Event('change'));
  for (let wait = 0; wait < 100 && !(beside.complete && over.complete); wait++)
    await new Promise(done => setTimeout(done, 100));
  want(beside.naturalWidth > 0 && over.naturalWidth > 0, 'no pictures of a class');
  want(beside.src.endsWith('heat-2.png') && over.src.endsWith('overlay-2.png'), 'not the class chosen');
  want(!shown('.of-classes') && shown('.of-score'), 'not the legend of scores');
  want(slide.querySelector('.which').textContent === 'class2', 'not the name of the class');
  choice.value = '-classes';
  choice.dispatchEvent(new Event('change'));
  want(shown('.of-classes') && beside.src.endsWith('heat-classes.png'), 'no way back');
  want(document.querySelectorAll('.confusion tbody tr').length === 3, 'no confusion matrix');

  const table = document.querySelector('table.sortable');
  const scores = () => Array.from(table.tBodies[0].rows).map(r => parseFloat(r.cells[2].textContent));
  const button = table.querySelectorAll('th button')[2];
  button.click();
  want(scores().join() === '0.9,0.2,NaN', 'not sorted down: ' + scores());
  button.click();
  want(scores().join() === '0.2,0.9,NaN', 'not sorted up: ' + scores());
  want(button.parentElement.getAttribute('aria-sort') === 'ascending', 'order is not announced');

  want(document.querySelectorAll('.plot svg[role=img][aria-label]').length >= 4, 'curves are missing');
  want(document.querySelectorAll('label').length > 0 && Array.from(document.querySelectorAll('input'))
    .every(i => i.labels.length > 0), 'an input without a label');
  const ids = Array.from(document.querySelectorAll('[id]')).map(e => e.id);
  want(new Set(ids).size === ids.length, 'an id stands twice');
  document.querySelectorAll('a[href^="#"]').forEach(a =>
    want(document.getElementById(a.getAttribute('href').slice(1)), 'leads nowhere: ' + a.href));
  want(document.documentElement.scrollWidth <= window.innerWidth,
    'wider than the screen: ' + document.documentElement.scrollWidth + ' > ' + window.innerWidth);

  // Contrast as WCAG defines it; 4.5 is what small text needs.
  const light = c => c.match(/[\d.]+/g).slice(0, 3).map(v => c.startsWith('color(') ? Number(v) : v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { while (e && getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement;
    return e ? getComputedStyle(e).backgroundColor : 'rgb(255,255,255)'; };
  document.querySelectorAll('h1,h2,h3,h4,dt,dd,td,th button,a,figcaption,p,li,summary,footer,.tag').forEach(e => {
    if (e.closest('.skip')) return;
    const a = light(getComputedStyle(e).color), b = light(behind(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    want(contrast >= 4.5, 'contrast ' + contrast.toFixed(2) + ' of ' + e.tagName + ' ' + e.className);
  });
  document.documentElement.dataset.width = window.innerWidth;
  document.documentElement.dataset.paper = getComputedStyle(document.body).backgroundColor;
}
</script>
</body></html>
HTML

# Chromium's windows are at least 500 px wide; a frame may be as narrow as a phone.
for page in check index; do
    cat >page/phone-$page.html <<HTML
<!DOCTYPE html><html><body style="margin:0"><iframe src="$page.html" title="phone" width="390" height="2400" style="border:0"></iframe>
<script>addEventListener('message', m => Object.assign(document.documentElement.dataset, m.data));</script></body></html>
HTML
done

browse() { # file, then options of chromium
    timeout 180 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$work/profile" --virtual-time-budget=20000 "${@:2}" "file://$work/page/$1" 2>>browser.log
}
check() { # name, page to check, page to picture, width and height, paper, options
    browse "$2" --window-size="$4" "${@:6}" --dump-dom >"$1.html" || fail "$1: chromium failed: $(tail -n 3 browser.log)"
    grep -o 'data-findings="[^"]*"' "$1.html" | head -n 1 >"$1.findings"
    grep -q '"all is well"' "$1.findings" || fail "$1: $(cat "$1.findings")"
    grep -q "data-paper=\"$5\"" "$1.html" || fail "$1: the paper is not $5: $(grep -o 'data-paper="[^"]*"' "$1.html")"
    grep -o 'data-width="[^"]*"' "$1.html"
    browse "$3" --window-size="$4" "${@:6}" --screenshot="$work/$1.png" >/dev/null
    [ -s "$1.png" ] || fail "$1: no screenshot"
}
check light check.html index.html 1280,2400 'rgb(255, 255, 255)' --blink-settings=preferredColorScheme=1
check dark check.html index.html 1280,2400 'rgb(21, 23, 26)' --blink-settings=preferredColorScheme=0
check phone phone-check.html phone-index.html 500,2400 'rgb(255, 255, 255)' --blink-settings=preferredColorScheme=1
grep -q 'data-width="390"' phone.html || fail "the phone is not 390 px wide"
echo "the page was looked at in light, in dark and on a phone: $work/*.png"
