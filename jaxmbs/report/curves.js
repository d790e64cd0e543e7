// Curves over time.

const config = { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: true };
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

// Force or torque of a driver or a motor, and below it its travel.
const drives = [...document.querySelectorAll(".drive")];

function drawDrive(figure) {
  const own = data.drives[Number(figure.dataset.drive)];
  const x = Array.from(times), load = Array.from(unpacked(own.load));
  const travel = own.travel && Array.from(unpacked(own.travel));
  const bare = load.every(Number.isNaN);
  const traces = [{ x, y: load, mode: "lines", line: style(0), name: own.name }];
  if (travel) traces.push({ x, y: travel, mode: "lines", line: style(1), yaxis: "y2" });
  const notes = [];
  if (bare) {
    notes.push({
      text: "not unique: there is no curve", showarrow: false, xref: "paper", yref: "y domain",
      x: 0.5, y: 0.5,
    });
  } else {
    const sizes = load.map((y) => (Number.isNaN(y) ? -1 : Math.abs(y)));
    const k = sizes.indexOf(Math.max(...sizes));
    traces.push({ x: [x[k]], y: [load[k]], mode: "markers", marker: { color: INK, size: 9,
      symbol: "diamond-open", line: { width: 2 } }, hoverinfo: "skip" });
    const half = x[k] > 0.5 * (x[0] + x[states - 1]);
    notes.push({ text: `${digits(load[k])} ${own.loadUnit} at ${digits(x[k])} s`, x: x[k],
      y: load[k], showarrow: false, xanchor: half ? "right" : "left", xshift: half ? -8 : 8,
      bgcolor: "rgba(255,255,255,0.8)" });
  }
  const word = own.loadUnit === "N" ? "force" : own.loadUnit === "N m" ? "torque" : "load";
  const grid = { gridcolor: "#ddd", zerolinecolor: "#999" };
  const layout = flat("", {
    title: { text: plain(own.name), font: { size: 14 }, x: 0.02, xanchor: "left" },
    margin: { l: 70, r: 15, t: 30, b: 45 }, showlegend: false, annotations: notes,
    yaxis: { title: { text: `${word} (${own.loadUnit})` }, domain: travel ? [0.54, 1] : [0, 1],
      ...grid },
    yaxis2: { title: { text: `travel (${own.travelUnit})` }, domain: [0, 0.46], ...grid },
  });
  layout.xaxis.anchor = travel ? "y2" : "y";
  return Plotly.newPlot(figure, traces, layout, config);
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
      dtick: Math.max(1, Math.ceil((greatest - least) / 5)), tickformat: "d", gridcolor: "#ddd" },
    yaxis2: { title: { text: "pivot" }, domain: [0.58, 1], type: "log", exponentformat: "power",
      gridcolor: "#ddd" },
    shapes: [cursor(), ...data.passages.map(passage)],
  });
  return Plotly.newPlot(ranks, traces, layout, config);
}
