// The mechanism.

const at = (array, count, state, k) => {
  const i = 3 * (state * count + k);
  return [array[i], array[i + 1], array[i + 2]];
};
const lines = () => ({ x: [], y: [], z: [], text: "", textposition: "top right" });
const put = (trace, p) => { trace.x.push(p[0]); trace.y.push(p[1]); trace.z.push(p[2]); };
const gap = (trace) => { trace.x.push(null); trace.y.push(null); trace.z.push(null); };
const segment = (trace, a, b) => { put(trace, a); put(trace, b); gap(trace); };
const sum = (a, b, s = 1) => a.map((x, i) => x + s * b[i]);
const norm = (a) => Math.hypot(...a);
const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0],
];

// The three components of what a joint exerts; of a planar one a force has no z, a torque no x
// and y.
const slots = (joint, what) => {
  const found = [null, null, null];
  joints[joint].components.forEach((c) => {
    if (components[c].what !== what) return;
    const axis = planar && what === "torque" ? 2 : components[c].place;
    found[axis] = c;
  });
  return found;
};
const slotsOf = {
  force: joints.map((_, j) => slots(j, "force")),
  torque: joints.map((_, j) => slots(j, "torque")),
};

// An arrow of this size is as long as a fifth of the mechanism.
const largest = { force: 0, torque: 0 };
components.forEach(({ what, rounding }, c) => {
  for (let s = 0; s < states; s += 1) {
    const k = s * components.length + c;
    const seen = verdicts[k] === UNIQUE ? [values[k]] : [bandLow[k], bandHigh[k]];
    for (const x of seen) {
      if (Number.isFinite(x) && Math.abs(x) > rounding && what in largest) {
        largest[what] = Math.max(largest[what], Math.abs(x));
      }
    }
  }
});
const longest = 0.2 * data.size;

function arrow(trace, from, vector) {
  const length = norm(vector);
  if (length < 1e-3 * data.size) return;
  const tip = sum(from, vector);
  const along = vector.map((x) => x / length);
  const helper = Math.abs(along[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
  const side = cross(along, helper);
  const across = side.map((x) => x / norm(side));
  const head = Math.min(0.3 * length, 0.035 * data.size);
  const back = sum(tip, along, -head);
  segment(trace, from, tip);
  const ways = planar ? [across] : [across, cross(along, across)];
  for (const way of ways) {
    put(trace, sum(back, way, 0.45 * head));
    put(trace, tip);
    put(trace, sum(back, way, -0.45 * head));
    gap(trace);
  }
}

// Along which directions a force or a torque that is not unique may change.
function waysOf(state, joint) {
  const k = data.spread.indexOf(joint);
  if (k < 0) return [];
  const i = 2 * (state * data.spread.length + k) + (arrows === "torque" ? 1 : 0);
  return Array.from({ length: ways[i] }, (_, d) => [...directions.slice(9 * i + 3 * d, 9 * i + 3 * d + 3)]);
}

// On a line: from its one end to the other, which are ends of the ranges of components.
function bar(trace, thin, from, low, high, way) {
  const main = way.map(Math.abs).indexOf(Math.max(...way.map(Math.abs)));
  const ends = [low, high].map((end, side) => end.map((_, i) => {
    const along = way[i] * way[main] >= 0;
    return (along ? [low, high] : [high, low])[side][i];
  }));
  const [first, last] = ends.map((end) => sum(from, end));
  segment(trace, first, last);
  // To the point at which it acts.
  put(thin, first);
  segment(thin, from, last);
}

// In a plane or in space: the box of the ranges of components.
function box(trace, from, low, high) {
  const ends = [low, high];
  const several = (axis) => (high[axis] > low[axis] ? [0, 1] : [0]);
  for (const i of [0, 1, 2]) {
    if (!(high[i] > low[i])) continue;
    const [j, k] = [(i + 1) % 3, (i + 2) % 3];
    for (const m of several(j)) {
      for (const n of several(k)) {
        const a = [...from];
        a[j] += ends[m][j];
        a[k] += ends[n][k];
        const b = [...a];
        a[i] += low[i];
        b[i] += high[i];
        segment(trace, a, b);
      }
    }
  }
}

function loads(state, { solid, bars, boxes, unbounded }) {
  if (arrows === "none") return;
  const scale = largest[arrows] > 0 ? (factor * longest) / largest[arrows] : 0;
  joints.forEach(({ place }, j) => {
    if (place < 0) return;
    const from = at(points, places, state, place);
    const low = [0, 0, 0], high = [0, 0, 0];
    let unique = true, known = true, finite = true;
    slotsOf[arrows][j].forEach((c, axis) => {
      if (c === null) return;
      const k = state * components.length + c;
      const own = verdicts[k] === UNIQUE;
      const ends = own ? [values[k], values[k]] : [bandLow[k], bandHigh[k]];
      unique = unique && own;
      known = known && !ends.some(Number.isNaN);
      finite = finite && ends.every(Number.isFinite);
      [low[axis], high[axis]] = ends.map((x) => scale * (Number.isFinite(x) ? x : 0));
    });
    if (!known) return;
    const free = waysOf(state, j);
    if (unique) arrow(solid, from, low);
    else if (!finite) {
      const reach = 0.5 * longest * Math.min(factor, 1.5);
      for (const way of free) segment(unbounded, sum(from, way, -reach), sum(from, way, reach));
    } else if (free.length === 1) bar(bars, boxes, from, low, high, free[0]);
    else box(boxes, from, low, high);
  });
}

// Names stand on the far side of their joint, seen from the middle of all of them.
const right = planar ? [1, 0, 0] : [0.82, 0.57, 0], up = planar ? [0, 1, 0] : [-0.25, 0.36, 0.9];
const dot = (a, b) => a.reduce((total, x, i) => total + x * b[i], 0);
const middle = [0, 1, 2].map((i) => 0.5 * (data.low[i] + data.high[i]));
const outwards = new Map(data.places.map(([place]) => {
  const away = sum(at(points, places, 0, place), middle, -1);
  const [x, y] = [dot(away, right), dot(away, up)];
  const near = 0.02 * data.size;
  const vertical = y > -near ? "top" : "bottom";
  const horizontal = x > -near ? "right" : "left";
  return [place, `${vertical} ${horizontal}`];
}));

// In the order of `looks`.
function drawn(state) {
  const all = looks.map(lines);
  const [bars, solid, dashed, fixed, good, many, centres, forces, boxes, unbounded, ropes, wheels] = all;
  for (const [hub, point, constraint] of data.spokes) {
    const unique = jointVerdicts[state * joints.length + constraint] === UNIQUE;
    const end = at(points, places, state, point);
    segment(unique ? solid : dashed, at(hubs, bodies, state, hub), end);
  }
  for (const { kind, points: own, count } of strands) {
    const into = kind === "rope" ? ropes : wheels;
    for (let k = 0; k < count; k += 1) put(into, at(own, count, state, k));
    gap(into);
  }
  for (const point of data.ground) put(fixed, at(points, places, state, point));
  for (const trace of [good, many]) Object.assign(trace, { text: [], textposition: [] });
  for (const [place, own] of data.places) {
    const unique = own.every((j) => jointVerdicts[state * joints.length + j] === UNIQUE);
    const into = unique ? good : many;
    put(into, at(points, places, state, place));
    const name = own.map((j) => plain(joints[j].name)).join(", ");
    into.text.push(unique ? name : `<b>${name}</b>`);
    into.textposition.push(outwards.get(place));
  }
  centres.text = data.hubNames.map((name) => `<i>${plain(name)}</i>`);
  centres.textposition = "bottom center";
  for (let k = 0; k < bodies; k += 1) put(centres, at(hubs, bodies, state, k));
  loads(state, { solid: forces, bars, boxes, unbounded });
  // A trace of nothing would be taken out of the scene, and put in again.
  all.forEach((trace) => { if (!trace.x.length) gap(trace); });
  return all;
}

const line = (color, width, dash = "solid") => ({ mode: "lines", line: { color, width, dash } });
const marks = (symbol, size, color, edge) => ({
  mode: "markers", marker: { symbol, size, color, line: { color: edge, width: 1.5 } },
});
const labelled = (look, size, mode = "markers+text") => ({
  ...look, mode, textfont: { size, color: "#111" },
});
const looks = [
  line(RANGE, 14),
  line(BODY, 7),
  line(BODY, 5, "dash"),
  marks("square-open", 8, "#000", "#000"),
  labelled(marks("circle", 6, GOOD, "#000"), 13),
  labelled(marks("diamond", 8, MANY, "#000"), 14),
  labelled(marks("circle", 3, BODY, BODY), 11, "markers"),
  line("#000", 4),
  line(MANY, 3),
  line(MANY, 4, "dot"),
  line("#000", 3),
  line(BODY, 2),
];
const jointLooks = [4, 5], bodyLooks = [6];
const every = looks.map((_, k) => k);

function axis(letter, k) {
  const half = 0.5 * (data.high[k] - data.low[k]) + (planar && k === 2 ? 0.02 : 0.21) * data.size;
  return {
    half,
    layout: {
      title: { text: `${letter} (m)` },
      range: [middle[k] - half, middle[k] + half],
      visible: !(planar && k === 2),
      showspikes: false,
      gridcolor: "#ddd",
      zerolinecolor: "#999",
    },
  };
}
const axes = ["x", "y", "z"].map(axis);
const most = Math.max(...axes.map(({ half }) => half));
const scene = byId("scene");

// Of a planar mechanism as much as the frame holds: two units are as high as it.
function scaleOf() {
  if (!planar) return 1.3;
  const wide = scene.clientWidth / scene.clientHeight;
  return 1.48 * Math.min(most / axes[1].half, (wide * most) / axes[0].half);
}
const camera = planar
  ? { eye: { x: 0, y: 0, z: 1.5 }, up: { x: 0, y: 1, z: 0 }, projection: { type: "orthographic" } }
  : { eye: { x: 0.95, y: -1.35, z: 0.75 }, up: { x: 0, y: 0, z: 1 } };
const sceneLayout = () => ({
  margin: { l: 0, r: 0, t: 0, b: 0 },
  showlegend: false,
  hovermode: false,
  scene: {
    ...Object.fromEntries(axes.map(({ layout }, k) => [`${"xyz"[k]}axis`, layout])),
    aspectmode: "manual",
    aspectratio: Object.fromEntries(
      axes.map(({ half }, k) => ["xyz"[k], scaleOf() * (half / most)]),
    ),
    camera,
    dragmode: planar ? "pan" : "turntable",
  },
});
const config = { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: true };

function makeScene() {
  const traces = drawn(0).map((trace, k) => ({
    type: "scatter3d", hoverinfo: "skip", connectgaps: false, ...looks[k], ...trace,
  }));
  return Plotly.newPlot(scene, traces, sceneLayout(), config);
}

function drawScene(state) {
  const all = drawn(state);
  const update = { x: [], y: [], z: [], text: [], textposition: [] };
  for (const trace of all) for (const key in update) update[key].push(trace[key]);
  return Plotly.restyle(scene, update, every);
}
