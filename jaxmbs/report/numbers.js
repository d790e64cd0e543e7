// What moves in a report. Arrays come as bytes (see _page.py). The parts of this program follow
// each other in one function: numbers, scene, curves, time.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const ARRAYS = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, i4: Int32Array, u2: Uint16Array,
  u4: Uint32Array,
};
const unpacked = ({ type, data: text }) =>
  new ARRAYS[type](Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const { states, components, joints } = data;

// Of an array of `width` numbers for each state, which has one row alone where all are equal.
function steady(packed, width) {
  const own = unpacked(packed);
  if (states === 1 || own.length !== width) return own;
  const all = new own.constructor(states * width);
  for (let s = 0; s < states; s += 1) all.set(own, s * width);
  return all;
}

// Of all components, from the columns of some.
function spreadOut(packed, fill) {
  const { columns } = packed, own = unpacked(packed);
  columns.forEach((c, k) => {
    for (let s = 0; s < states; s += 1) {
      fill[s * components.length + c] = own[s * columns.length + k];
    }
  });
  return fill;
}

const UNIQUE = 1;
const planar = data.dimension === 2;
const times = unpacked(data.times);
const verdicts = steady(data.verdicts, components.length);
const jointVerdicts = steady(data.jointVerdicts, joints.length);
const nothing = () => new Float64Array(states * components.length).fill(NaN);
const values = spreadOut(data.values, nothing());
const [bandLow, bandHigh] = [[data.bandLow, -Infinity], [data.bandHigh, Infinity]].map(
  ([packed, end]) => {
    const all = spreadOut(packed, nothing());
    for (const c of data.unbounded) {
      for (let s = 0; s < states; s += 1) {
        const k = s * components.length + c;
        if (verdicts[k] === 0) all[k] = end;
      }
    }
    return all;
  },
);
const rank = steady(data.rank, 1);
const margin = unpacked(data.margin);

const MANY = "#b3261e", GOOD = "#8ecae6", RANGE = "#eec3bd";
// Styles differ as well as colours: the picture must be readable in grey.
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const GREYS = ["#111111", "#2a6f97", "#c05621", "#5c677d", "#7b2d8b", "#2f7d32"];

let shown = 0;
let arrows = "force";
let factor = 1;

// Plotly takes some of HTML in the texts that it draws.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const digits = (x, rounding = 0) =>
  Math.abs(x) <= rounding ? "0" : String(Number(x.toPrecision(6)));

function rangeWords(low, high, rounding) {
  if (Number.isNaN(low) || Number.isNaN(high)) return "not unique, no answer";
  const least = digits(low, rounding), most = digits(high, rounding);
  if (low === -Infinity && high === Infinity) return "not unique, unbounded";
  if (low === -Infinity) return `not unique, at most ${most}`;
  if (high === Infinity) return `not unique, at least ${least}`;
  return `not unique, from ${least} to ${most}`;
}

function valueWords(state, component) {
  const k = state * components.length + component;
  const { rounding } = components[component];
  if (verdicts[k] === UNIQUE) return digits(values[k], rounding);
  if (verdicts[k] < 0) return "not decided";
  return rangeWords(bandLow[k], bandHigh[k], rounding);
}

function showValues(state) {
  components.forEach((_, c) => {
    const cell = byId(`value-${c}`), k = state * components.length + c;
    const unique = verdicts[k] === UNIQUE;
    const words = valueWords(state, c);
    if (cell.textContent !== words) cell.textContent = words;
    // The number itself, to the last bit.
    if (unique) cell.value = String(values[k]);
    else cell.removeAttribute("value");
    cell.parentElement.classList.toggle("many", !unique);
  });
  joints.forEach((_, j) => {
    const many = jointVerdicts[state * joints.length + j] !== UNIQUE;
    byId(`joint-${j}`).classList.toggle("many", many);
  });
  byId("shown").textContent = `${digits(times[state])} s`;
}
