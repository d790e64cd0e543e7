// What moves in a report. Arrays come as bytes (see _data.py); a move of the slider changes the
// data of a few traces, none of which is made anew. The parts of this program follow each other in
// one function: numbers, scene, curves, time.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const ARRAYS = { f4: Float32Array, f8: Float64Array, i1: Int8Array, i4: Int32Array };
const unpacked = ({ type, data: text }) =>
  new ARRAYS[type](Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

const times = unpacked(data.times);
const points = unpacked(data.points);
const hubs = unpacked(data.hubs);
const strands = data.strands.map((own) => ({ ...own, points: unpacked(own.points) }));
const values = unpacked(data.values);
const bandLow = unpacked(data.bandLow);
const bandHigh = unpacked(data.bandHigh);
const verdicts = unpacked(data.verdicts);
const jointVerdicts = unpacked(data.jointVerdicts);
const ways = unpacked(data.ways);
const directions = unpacked(data.directions);
const rank = unpacked(data.rank);
const margin = unpacked(data.margin);
const { components, joints } = data;
const states = times.length;
const places = points.length / states / 3;
const bodies = hubs.length / states / 3;
const UNIQUE = 1;
const planar = data.dimension === 2;

const BODY = "#5c677d", MANY = "#b3261e", GOOD = "#8ecae6", RANGE = "#eec3bd";
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
