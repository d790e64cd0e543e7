"use strict";

// What moves in a report. Arrays come as bytes (see _data.py); a move of the slider changes the
// data of a few traces, none of which is made anew.
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const ARRAYS = { f4: Float32Array, f8: Float64Array, i1: Int8Array, i4: Int32Array };
  const unpacked = ({ type, data: text }) =>
    new ARRAYS[type](Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

  const times = unpacked(data.times);
  const points = unpacked(data.points);
  const hubs = unpacked(data.hubs);
  const values = unpacked(data.values);
  const bandLow = unpacked(data.bandLow);
  const bandHigh = unpacked(data.bandHigh);
  const verdicts = unpacked(data.verdicts);
  const jointVerdicts = unpacked(data.jointVerdicts);
  const rank = unpacked(data.rank);
  const margin = unpacked(data.margin);
  const { components, joints } = data;
  const states = times.length;
  const places = points.length / states / 3;
  const bodies = hubs.length / states / 3;
  const UNIQUE = 1;
  const planar = data.dimension === 2;

  const BODY = "#5c677d", MANY = "#b3261e", GOOD = "#8ecae6";
  // Styles differ as well as colours: the picture must be readable in grey.
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const GREYS = ["#111111", "#2a6f97", "#c05621", "#5c677d", "#7b2d8b", "#2f7d32"];

  let shown = 0;
  let arrows = "force";
  let factor = 1;

  // -------------------------------------------------------------------------------------------
  // Words
  // -------------------------------------------------------------------------------------------

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

  // -------------------------------------------------------------------------------------------
  // The mechanism
  // -------------------------------------------------------------------------------------------

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

  // An arrow of this size is as long as a quarter of the mechanism.
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
  const longest = 0.25 * data.size;

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

  // The box of the ranges of three components; where one is not bounded, a line for each axis.
  function band(bounded, unbounded, from, low, high, clip) {
    const open = [0, 1, 2].some((i) => !Number.isFinite(low[i]) || !Number.isFinite(high[i]));
    const within = (x) => Math.max(-clip, Math.min(clip, x));
    const ends = [low.map(within), high.map(within)];
    for (let i = 0; i < 3; i += 1) {
      if (!(high[i] > low[i])) continue;
      if (open) {
        const a = [...from], b = [...from];
        a[i] += ends[0][i];
        b[i] += ends[1][i];
        segment(unbounded, a, b);
        continue;
      }
      const [j, k] = [(i + 1) % 3, (i + 2) % 3];
      const corners = (axis) => (high[axis] > low[axis] ? [0, 1] : [0]);
      for (const m of corners(j)) {
        for (const n of corners(k)) {
          const a = [...from];
          a[j] += ends[m][j];
          a[k] += ends[n][k];
          const b = [...a];
          a[i] += ends[0][i];
          b[i] += ends[1][i];
          segment(bounded, a, b);
        }
      }
    }
  }

  function loads(state, solid, bounded, unbounded) {
    if (arrows === "none") return;
    const scale = largest[arrows] > 0 ? (factor * longest) / largest[arrows] : 0;
    joints.forEach(({ place }, j) => {
      if (place < 0) return;
      const from = at(points, places, state, place);
      const low = [0, 0, 0], high = [0, 0, 0];
      let unique = true, known = true;
      slotsOf[arrows][j].forEach((c, axis) => {
        if (c === null) return;
        const k = state * components.length + c;
        const own = verdicts[k] === UNIQUE;
        unique = unique && own;
        low[axis] = scale * (own ? values[k] : bandLow[k]);
        high[axis] = scale * (own ? values[k] : bandHigh[k]);
        // Nothing else has a size to compare with: what is unbounded stays so.
        if (scale === 0) {
          low[axis] = own ? 0 : bandLow[k];
          high[axis] = own ? 0 : bandHigh[k];
        }
        known = known && !Number.isNaN(low[axis]) && !Number.isNaN(high[axis]);
      });
      if (!known) return;
      if (unique) arrow(solid, from, low);
      else band(bounded, unbounded, from, low, high, 0.55 * longest * Math.min(factor, 1.5));
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
    const horizontal = Math.abs(x) < near ? "center" : x > 0 ? "right" : "left";
    return [place, `${vertical} ${horizontal}`];
  }));

  // In the order of `looks`.
  function drawn(state) {
    const [solid, dashed, fixed, good, many, centres, forces, bounded, unbounded] =
      Array.from({ length: 9 }, lines);
    for (const [hub, point, constraint] of data.spokes) {
      const unique = jointVerdicts[state * joints.length + constraint] === UNIQUE;
      const end = at(points, places, state, point);
      segment(unique ? solid : dashed, at(hubs, bodies, state, hub), end);
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
    loads(state, forces, bounded, unbounded);
    const all = [solid, dashed, fixed, good, many, centres, forces, bounded, unbounded];
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
    line(BODY, 7),
    line(BODY, 5, "dash"),
    marks("square-open", 8, "#000", "#000"),
    labelled(marks("circle", 6, GOOD, "#000"), 13),
    labelled(marks("diamond", 8, MANY, "#000"), 14),
    labelled(marks("circle", 3, BODY, BODY), 11, "markers"),
    line("#000", 4),
    line(MANY, 4, "dash"),
    line(MANY, 4, "dot"),
  ];
  const jointLooks = [3, 4], bodyLooks = [5];
  const every = looks.map((_, k) => k);

  function axis(letter, k) {
    const half = 0.5 * (data.high[k] - data.low[k]) + (planar && k === 2 ? 0.02 : 0.16) * data.size;
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
    return 1.55 * Math.min(most / axes[1].half, (wide * most) / axes[0].half);
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

  // -------------------------------------------------------------------------------------------
  // Curves
  // -------------------------------------------------------------------------------------------

  const curves = byId("curves");
  const ranks = byId("ranks");
  const cursor = () => ({
    type: "line", xref: "x", yref: "paper", x0: times[shown], x1: times[shown], y0: 0, y1: 1,
    line: { color: "#000", width: 1.5, dash: "dot" },
  });
  const flat = (title, more) => ({
    margin: { l: 70, r: 20, t: 20, b: 50 },
    hovermode: "x unified",
    font: { size: 13 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
    xaxis: { title: { text: "time (s)" }, range: [times[0], times[states - 1]], gridcolor: "#ddd" },
    yaxis: { title: { text: title }, gridcolor: "#ddd", zerolinecolor: "#999" },
    shapes: [cursor()],
    ...more,
  });
  const column = (array, count, k) => Array.from(times, (_, s) => array[s * count + k]);
  const style = (k) => ({
    color: GREYS[k % GREYS.length], dash: DASHES[k % DASHES.length], width: 2.2,
  });

  function options() {
    const found = [{ label: "magnitudes of all unique forces", joint: -1 }];
    joints.forEach(({ name, components: own }, j) => {
      for (const what of ["force", "torque", "generalized"]) {
        const some = own.filter((c) => components[c].what === what);
        const matters = some.some((c) => {
          for (let s = 0; s < states; s += 1) {
            const k = s * components.length + c;
            if (!(Math.abs(values[k]) <= components[c].rounding)) return true;
          }
          return false;
        });
        if (matters) {
          const word = what === "generalized" ? "on coordinates" : what;
          found.push({ label: `${name}: ${word}`, joint: j, what, some });
        }
      }
    });
    return found;
  }

  function magnitudes() {
    return joints.flatMap(({ name }, j) => {
      const own = slotsOf.force[j].filter((c) => c !== null);
      if (!own.length) return [];
      // A sum with NaN, which stands for what is not unique, is NaN: a gap.
      const y = Array.from(times, (_, s) =>
        Math.hypot(...own.map((c) => values[s * components.length + c])));
      if (y.every(Number.isNaN)) return [];
      return [{ x: Array.from(times), y, name: plain(name), mode: "lines", line: style(j) }];
    });
  }

  // The states in a row at which a component has a finite range.
  function runs(c) {
    const found = [];
    let own = null;
    for (let s = 0; s < states; s += 1) {
      const k = s * components.length + c;
      const bounded = Number.isFinite(bandLow[k]) && Number.isFinite(bandHigh[k]);
      if (bounded && own) own.push(s);
      else if (bounded) found.push((own = [s]));
      else own = null;
    }
    return found;
  }

  function componentTraces(c, order) {
    const { label } = components[c];
    const n = components.length;
    const trace = {
      x: Array.from(times), y: column(values, n, c), name: plain(label), mode: "lines",
      line: style(order),
    };
    const fill = { color: GREYS[order], shape: "/\\x."[order % 4], size: 8, fillmode: "overlay" };
    const bands = runs(c).map((own, k) => ({
      x: [...own, ...[...own].reverse()].map((s) => times[s]),
      y: [
        ...own.map((s) => bandHigh[s * n + c]),
        ...[...own].reverse().map((s) => bandLow[s * n + c]),
      ],
      fill: "toself", fillpattern: fill, fillcolor: "rgba(0,0,0,0.03)", mode: "lines",
      line: { color: GREYS[order], width: 1, dash: "dash" },
      name: `${plain(label)}: range, not unique`, showlegend: k === 0, hoverinfo: "skip",
    }));
    const empty = trace.y.every(Number.isNaN);
    return [...(empty ? [] : [trace]), ...bands];
  }

  function curveWords({ joint, some }) {
    if (joint < 0) return "Where a force is not unique it has no curve.";
    const told = some.flatMap((c) => {
      const kinds = new Set();
      for (let s = 0; s < states; s += 1) {
        const k = s * components.length + c;
        if (verdicts[k] === UNIQUE) continue;
        const bounded = Number.isFinite(bandLow[k]) && Number.isFinite(bandHigh[k]);
        if (bounded) kinds.add("not unique, within the hatched range");
        else kinds.add(valueWords(s, c).replace(/-?\d.*$/, "a bound (see the table)"));
      }
      return kinds.size ? [`${components[c].label}: ${[...kinds].join("; ")}`] : [];
    });
    return told.length ? `${told.join(". ")}.` : "All of it is unique.";
  }

  function drawCurves(option) {
    const one = option.joint >= 0;
    const traces = one ? option.some.flatMap(componentTraces) : magnitudes();
    const unit = one ? components[option.some[0]].unit : "N";
    const what = one ? (option.what === "generalized" ? "reaction" : option.what) : "force";
    byId("curve-words").textContent = curveWords(option);
    const bare = traces.length === 0;
    const note = {
      text: "not unique: there is no curve", showarrow: false, xref: "paper", yref: "paper",
      x: 0.5, y: 0.5, font: { size: 18 },
    };
    const layout = flat(`${what} (${unit})`, { annotations: bare ? [note] : [] });
    layout.showlegend = !bare;
    return Plotly.react(curves, traces, layout, config);
  }

  function makeCurves() {
    const choice = byId("choice");
    const found = options();
    found.forEach(({ label }, k) => choice.add(new Option(label, String(k))));
    choice.addEventListener("change", () => drawCurves(found[Number(choice.value)]));
    return drawCurves(found[0]);
  }

  function makeRanks() {
    const x = Array.from(times);
    const traces = [
      { x, y: Array.from(rank), name: "rank", mode: "lines", line: { ...style(0), shape: "hv" } },
      { x, y: Array.from(margin), name: "last kept pivot over the first", mode: "lines",
        line: style(1), yaxis: "y2" },
    ];
    const [least, greatest] = [Math.min(...rank), Math.max(...rank)];
    const passage = (t) => ({ ...cursor(), x0: t, x1: t, line: { color: MANY, width: 1.5 } });
    const layout = flat("rank", {
      yaxis: { title: { text: "rank" }, domain: [0, 0.42], range: [least - 1, greatest + 1],
        tickformat: "d", gridcolor: "#ddd" },
      yaxis2: { title: { text: "pivot" }, domain: [0.58, 1], type: "log", exponentformat: "power",
        gridcolor: "#ddd" },
      shapes: [cursor(), ...data.passages.map(passage)],
    });
    return Plotly.newPlot(ranks, traces, layout, config);
  }

  // -------------------------------------------------------------------------------------------
  // Time
  // -------------------------------------------------------------------------------------------

  const slider = byId("slider");
  const play = byId("play");
  let playing = 0;
  let wanted = -1;

  // Answers when everything is drawn; how long it took is an entry of the page's performance.
  async function show(state) {
    const began = performance.now();
    shown = state;
    showValues(state);
    if (slider) {
      const words = `${digits(times[state])} s`;
      slider.value = String(state);
      slider.setAttribute("aria-valuetext", words);
      byId("time").textContent = words;
    }
    const move = { "shapes[0].x0": times[state], "shapes[0].x1": times[state] };
    const work = [scene && drawScene(state)];
    for (const figure of [curves, ranks]) if (figure) work.push(Plotly.relayout(figure, move));
    await Promise.all(work);
    document.body.dataset.shown = String(state);
    performance.measure("state shown", { start: began });
  }

  const later = (t) => {
    let k = shown;
    while (k < states - 1 && times[k + 1] <= t) k += 1;
    return k;
  };

  function stop() {
    playing += 1;
    play.textContent = "Play";
    byId("time").setAttribute("aria-live", "polite");
  }

  async function run() {
    playing += 1;
    const own = playing;
    play.textContent = "Pause";
    // Read out at every state it would not be understood.
    byId("time").setAttribute("aria-live", "off");
    if (shown === states - 1) await show(0);
    let last = performance.now(), time = times[shown];
    const step = async () => {
      if (own !== playing) return;
      const now = performance.now();
      time += ((now - last) / 1000) * Number(byId("speed").value);
      last = now;
      const state = later(time);
      if (state !== shown) await show(state);
      if (own !== playing) return;
      if (state === states - 1) stop();
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  function listen() {
    if (slider) {
      slider.addEventListener("input", () => {
        stop();
        // Moves that come faster than the screen are drawn as one.
        if (wanted < 0) requestAnimationFrame(() => { show(wanted); wanted = -1; });
        wanted = Number(slider.value);
      });
      play.addEventListener("click", () => (play.textContent === "Play" ? run() : stop()));
    }
    if (!scene) return;
    byId("arrows").addEventListener("change", (event) => {
      arrows = event.target.value;
      drawScene(shown);
    });
    byId("length").addEventListener("input", (event) => {
      factor = 10 ** Number(event.target.value);
      drawScene(shown);
    });
    byId("names").addEventListener("change", ({ target: { value } }) => {
      const mode = (named) => ({ mode: named ? "markers+text" : "markers" });
      Plotly.restyle(scene, mode(value !== "none"), jointLooks);
      Plotly.restyle(scene, mode(value === "all"), bodyLooks);
    });
    byId("reset").addEventListener("click", () => {
      Plotly.relayout(scene, { "scene.camera": camera });
    });
  }

  async function begin() {
    showValues(0);
    listen();
    if (scene) await makeScene();
    if (curves) await makeCurves();
    if (ranks) await makeRanks();
    await show(0);
    document.body.dataset.ready = "true";
  }

  begin();
})();
