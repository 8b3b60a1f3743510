# The privacy calculator: noise to epsilon, epsilon to noise, several at once, a plot, bad input.
microtome synthesize epsilon --sigma 1.1 --rate 0.00426666667 --steps 14062 --delta 1e-5 --json |
    sed -E 's/([0-9]\.[0-9]{5})[0-9]+/\1/'
microtome synthesize epsilon --target 8 --rate 0.02 --steps 2000 --json | sed -E 's/([0-9]\.[0-9]{3})[0-9]+/\1/'
microtome synthesize epsilon --target 2 --accountant prv --rate 0.02 --steps 500 | sed -n 4p
echo "--- several"
microtome synthesize epsilon --sigma 0.8 --sigma 1.5 --rate 0.01 --steps 5000 --steps 10000 -o epsilon.svg
grep -c 'sigma 0.8\|sigma 1.5' epsilon.svg
microtome synthesize epsilon --sigma 0.8 --sigma 1.5 --rate 0.01 --steps 10 --json | grep -c epsilon_prv
microtome synthesize epsilon --sigma 1.5 --rate 0.01 --steps 100 -q -o epsilon.png >/dev/null && od -An -tx1 -N4 epsilon.png
echo "--- beyond the range of PRV"
microtome synthesize epsilon --sigma 1 --rate 0.001 --steps 10000000 | sed -n 4p
echo "--- bad input"
microtome synthesize epsilon --sigma 1 --rate 1.5 --steps 10
microtome synthesize epsilon --sigma 0 --rate 0.1 --steps 10
microtome synthesize epsilon --sigma 1x --rate 0.1 --steps 10
microtome synthesize epsilon --sigma 1 --rate 0.1 --steps 1.5
microtome synthesize epsilon --sigma 1 --rate 0.1
microtome synthesize epsilon --rate 0.1 --steps 10
microtome synthesize epsilon --sigma 1 --target 3 --rate 0.1 --steps 10
microtome synthesize epsilon --target 0.05 --rate 0.1 --steps 10
microtome synthesize epsilon --sigma 1 --rate 0.1 --steps 10 -o epsilon.pdf
