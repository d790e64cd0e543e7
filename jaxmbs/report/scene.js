// The mechanism in three dimensions: surfaces are made once, and a move of the slider sets frames
// of bodies and the rods of which forces, ropes and bands consist. It is drawn when something has
// changed, and at no other time.

const BODY_EDGE = "#2b323b", INK = "#111111", GRID = "#d4d8dd", ROPE = "#333333";
const ONE = new THREE.Vector3(1, 1, 1);
const { size } = data;
const middle = [0, 1, 2].map((i) => 0.5 * (data.low[i] + data.high[i]));
const longest = 0.2 * size;

const at = (array, count, state, k) => {
  const i = 3 * (state * count + k);
  return [array[i], array[i + 1], array[i + 2]];
};
const sum = (a, b, s = 1) => a.map((x, i) => x + s * b[i]);
const norm = (a) => Math.hypot(...a);

// --- Forces: numbers ---------------------------------------------------------------------------

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

// Least and greatest components of a force or torque, in space, as they are: [low, high], whether
// it is unique, and whether nothing is known of what is not. null where there is no answer.
function rangeOf(what, joint, state) {
  const low = [0, 0, 0], high = [0, 0, 0];
  let unique = true, known = true;
  slotsOf[what][joint].forEach((c, axis) => {
    if (c === null) return;
    const k = state * components.length + c;
    const own = verdicts[k] === UNIQUE;
    [low[axis], high[axis]] = own ? [values[k], values[k]] : [bandLow[k], bandHigh[k]];
    unique = unique && own;
    known = known && !Number.isNaN(low[axis]) && !Number.isNaN(high[axis]);
  });
  const several = [0, 1, 2].filter((i) => low[i] < high[i]);
  const unbounded = several.length > 0
    && several.every((i) => low[i] === -Infinity && high[i] === Infinity);
  return known ? { low, high, unique, unbounded } : null;
}

// An arrow of this size is as long as a fifth of the mechanism: the largest of what is drawn as an
// arrow, a bar or a box.
const largest = { force: 0, torque: 0 };
for (const what of ["force", "torque"]) {
  joints.forEach((_, j) => {
    if (!slotsOf[what][j].some((c) => c !== null)) return;
    for (let s = 0; s < states; s += 1) {
      const own = rangeOf(what, j, s);
      if (!own || own.unbounded) continue;
      slotsOf[what][j].forEach((c, axis) => {
        if (c === null) return;
        for (const x of [own.low[axis], own.high[axis]]) {
          if (Number.isFinite(x) && Math.abs(x) > components[c].rounding) {
            largest[what] = Math.max(largest[what], Math.abs(x));
          }
        }
      });
    }
  });
}

const spread = {
  ...data.spread,
  count: steady(data.spread.count, 2 * data.spread.joints.length),
  kept: data.spread.kept.map((own) => ({ ...own, directions: steady(own.directions, 6) })),
};

// Along which directions a force or a torque that is not unique may change.
function waysOf(state, joint) {
  const k = spread.joints.indexOf(joint), part = arrows === "torque" ? 1 : 0;
  if (k < 0) return [];
  const count = spread.count[2 * (state * spread.joints.length + k) + part];
  if (count > 2) return [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  const own = spread.kept.find((x) => x.joint === k && x.part === part);
  return Array.from({ length: count }, (_, d) => at(own.directions, 2, state, d));
}

// --- Rods: ribbons that face whoever looks, of which everything consists that changes its length ---

const from = new THREE.Vector3(), turn = new THREE.Quaternion();

// Drawn at once, on top of the bodies if `above`. (Equal shapes that are drawn as instances of one
// took longer than all bodies where the processor draws.)
class Rods {
  constructor(world, color, order, above = true) {
    this.world = world;
    this.material = new THREE.MeshBasicMaterial({
      color, depthTest: !above, depthWrite: !above, side: THREE.DoubleSide,
    });
    this.material.onBeforeCompile = (shader) => {
      shader.vertexShader = shader.vertexShader
        .replace("void main() {", "attribute vec4 other;\nvoid main() {")
        .replace("#include <project_vertex>", `
          vec4 mvPosition = modelViewMatrix * vec4(position, 1.0);
          vec3 along = (modelViewMatrix * vec4(other.xyz, 1.0)).xyz - mvPosition.xyz;
          bool deep = projectionMatrix[2][3] != 0.0;
          vec3 across = cross(along, deep ? mvPosition.xyz : vec3(0.0, 0.0, -1.0));
          mvPosition.xyz += other.w * across / max(length(across), 1e-20);
          gl_Position = projectionMatrix * mvPosition;`);
    };
    this.order = order;
    this.segments = [];
    this.mesh = null;
  }

  clear() { this.segments.length = 0; }

  // From a to b, as wide at a, and at b as much or to a point.
  put(a, b, radius, pointed = false) { this.segments.push([a, b, radius, pointed]); }

  finish() {
    const count = this.segments.length;
    if (!this.mesh || this.room < count) this.grow(Math.max(16, 2 * count));
    const { position, other } = this.mesh.geometry.attributes;
    this.segments.forEach(([a, b, radius, pointed], k) => {
      const end = pointed ? 0 : radius;
      [[a, b, radius], [a, b, -radius], [b, a, end], [b, a, -end]].forEach(([p, q, side], i) => {
        position.array.set(p, 3 * (4 * k + i));
        other.array.set(q, 4 * (4 * k + i));
        other.array[4 * (4 * k + i) + 3] = side;
      });
    });
    position.needsUpdate = other.needsUpdate = true;
    this.mesh.geometry.setDrawRange(0, 6 * count);
    this.mesh.visible = count > 0;
  }

  grow(room) {
    if (this.mesh) {
      this.world.remove(this.mesh);
      this.mesh.geometry.dispose();
    }
    this.room = room;
    const geometry = new THREE.BufferGeometry();
    for (const [name, width] of [["position", 3], ["other", 4]]) {
      const own = new THREE.BufferAttribute(new Float32Array(4 * width * room), width);
      geometry.setAttribute(name, own.setUsage(THREE.DynamicDrawUsage));
    }
    // The ends are seen from each other: what is left at one is right at the other.
    geometry.setIndex(Array.from({ length: room }, (_, k) =>
      [0, 1, 2, 0, 2, 3].map((i) => 4 * k + i)).flat());
    this.mesh = new THREE.Mesh(geometry, this.material);
    this.mesh.frustumCulled = false;
    this.mesh.renderOrder = this.order;
    this.world.add(this.mesh);
  }
}

function arrow(all, start, vector) {
  const length = norm(vector);
  if (length < 1e-3 * size) return;
  const head = Math.min(0.35 * length, 0.035 * size);
  const neck = sum(start, vector, 1 - head / length);
  all.shafts.put(start, neck, 0.0035 * size);
  all.heads.put(neck, sum(start, vector), 0.36 * head, true);
}

// On a line: from its one end to the other, which are ends of the ranges of components. Where
// nothing bounds it there are dashes, from where the tip is nearest to the point at which it acts.
function bar(all, start, { low, high }, axis, scale, reach) {
  const main = axis.map(Math.abs).indexOf(Math.max(...axis.map(Math.abs)));
  const way = axis.map((x) => x * Math.sign(axis[main]));
  const ends = [way.map((x, i) => (x >= 0 ? low[i] : high[i])),
    way.map((x, i) => (x >= 0 ? high[i] : low[i]))];
  const open = ends.map((end) => !end.every(Number.isFinite));
  if (open[0] && open[1]) {
    // (Of what is bounded at neither end something is known only by rounding.)
    ends.fill(low.map((x, i) => [x, high[i], 0].find(Number.isFinite)));
  } else if (open[0] || open[1]) {
    const side = open[0] ? 0 : 1, known = ends[1 - side];
    const beyond = -known.reduce((total, x, i) => total + x * way[i], 0);
    ends[side] = beyond * (2 * side - 1) > 0 ? sum(known, way, beyond) : known;
  }
  const tips = ends.map((end) => sum(start, end, scale));
  const several = ends[0].some((x, i) => x !== ends[1][i]);
  if (several) all.bars.put(...tips, 0.011 * size);
  tips.forEach((tip, side) => {
    // To the point at which it acts.
    if ((several || side) && ends[side].some((x) => x !== 0)) {
      all.boxes.put(start, tip, 0.0022 * size);
    }
    if (open[side]) dashes(all, tip, way, reach, 2 * side - 1);
  });
}

// In a plane or in space: the box of the ranges of components, with dashes along the axes on whose
// side nothing bounds it. There the box ends at zero, or at what is known.
function box(all, start, range, scale, reach) {
  const least = range.low.map((x, i) => (x === -Infinity ? Math.min(range.high[i], 0) : x));
  const greatest = range.high.map((x, i) => (x === Infinity ? Math.max(range.low[i], 0) : x));
  const nearest = least.map((x, i) => Math.min(Math.max(0, x), greatest[i]));
  const [low, high] = [least, greatest].map((end) => end.map((x) => scale * x));
  const ends = [low, high];
  const several = (axis) => (high[axis] > low[axis] ? [0, 1] : [0]);
  let edges = 0;
  for (const i of [0, 1, 2]) {
    if (!(high[i] > low[i])) continue;
    const [j, k] = [(i + 1) % 3, (i + 2) % 3];
    for (const m of several(j)) {
      for (const n of several(k)) {
        const a = [...start];
        a[j] += ends[m][j];
        a[k] += ends[n][k];
        const b = [...a];
        a[i] += low[i];
        b[i] += high[i];
        all.boxes.put(a, b, 0.0022 * size);
        edges += 1;
      }
    }
  }
  // A box that is a point has no edges.
  if (!edges && nearest.some((x) => x !== 0)) {
    all.boxes.put(start, sum(start, nearest, scale), 0.0022 * size);
  }
  for (const i of [0, 1, 2]) {
    const way = [0, 1, 2].map((k) => (k === i ? 1 : 0));
    [[range.low, least, -1], [range.high, greatest, 1]].forEach(([bound, end, sign]) => {
      if (Number.isFinite(bound[i])) return;
      const at = nearest.map((x, k) => (k === i ? end[i] : x));
      dashes(all, sum(start, at, scale), way, reach, sign);
    });
  }
}

// Dashes to one side, without an end: nothing bounds it.
function dashes(all, start, way, reach, sign) {
  const count = 4, pitch = reach / count;
  for (let k = 0; k < count; k += 1) {
    const own = (x) => sum(start, way, sign * pitch * x);
    all.unbounded.put(own(k + 0.35), own(k + 0.9), 0.003 * size);
  }
}

function loads(state, all) {
  for (const rods of Object.values(all)) rods.clear();
  if (arrows !== "none") {
    const scale = largest[arrows] > 0 ? (factor * longest) / largest[arrows] : 0;
    const reach = 0.5 * longest * Math.min(factor, 1.5);
    joints.forEach(({ place: own }, j) => {
      if (own < 0 || !slotsOf[arrows][j].some((c) => c !== null)) return;
      const start = stage.places[own].at, range = rangeOf(arrows, j, state);
      if (!range) return;
      const free = waysOf(state, j);
      if (range.unique) arrow(all, start, range.low.map((x) => scale * x));
      else if (range.unbounded) {
        for (const way of free) {
          for (const sign of [-1, 1]) dashes(all, start, way, reach, sign);
        }
      } else if (free.length === 1) bar(all, start, range, free[0], scale, reach);
      else box(all, start, range, scale, reach);
    });
  }
  for (const rods of Object.values(all)) rods.finish();
}

// Radii of lines over the size of the scene.
const THICK = { rope: 0.0032, rod: 0.006, body: 0.005 };

// --- Surfaces ------------------------------------------------------------------------------------

// Edges between faces that meet at less than this stay smooth.
const CREASE = Math.cos((35 * Math.PI) / 180);

// Colours are given as screens show them, and light adds in their linear values.
const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);

// All solids of a part as one surface, with normals that are smooth where its faces nearly are:
// corners of faces that have a point and a normal in common are one vertex.
function surface(solids) {
  const position = [], normal = [], colour = [], index = [];
  for (const { vertices, faces: packed, colour: tone } of solids) {
    const points = unpacked(vertices), faces = unpacked(packed), shade = tone.map(linear);
    const flat = new Float32Array(faces.length), lengths = new Float32Array(faces.length / 3);
    const around = Array.from({ length: points.length / 3 }, () => []);
    for (let f = 0; f < faces.length; f += 3) {
      const [i, j, k] = [3 * faces[f], 3 * faces[f + 1], 3 * faces[f + 2]];
      const u = [0, 1, 2].map((x) => points[j + x] - points[i + x]);
      const v = [0, 1, 2].map((x) => points[k + x] - points[i + x]);
      // Twice the area long.
      flat[f] = u[1] * v[2] - u[2] * v[1];
      flat[f + 1] = u[2] * v[0] - u[0] * v[2];
      flat[f + 2] = u[0] * v[1] - u[1] * v[0];
      lengths[f / 3] = Math.hypot(flat[f], flat[f + 1], flat[f + 2]) || 1;
      for (const x of [0, 1, 2]) around[faces[f + x]].push(f);
    }
    const made = Array.from(around, () => []);
    for (let c = 0; c < faces.length; c += 1) {
      const f = c - (c % 3), mean = [0, 0, 0];
      for (const g of around[faces[c]]) {
        const cosine = (flat[f] * flat[g] + flat[f + 1] * flat[g + 1] + flat[f + 2] * flat[g + 2])
          / (lengths[f / 3] * lengths[g / 3]);
        if (g === f || cosine > CREASE) for (const x of [0, 1, 2]) mean[x] += flat[g + x];
      }
      const length = norm(mean) || 1, own = mean.map((x) => x / length);
      const same = made[faces[c]].find(
        (k) => [0, 1, 2].every((x) => Math.abs(normal[3 * k + x] - own[x]) < 1e-3));
      if (same !== undefined) index.push(same);
      else {
        const k = position.length / 3;
        made[faces[c]].push(k);
        index.push(k);
        for (const x of [0, 1, 2]) {
          position.push(points[3 * faces[c] + x]);
          normal.push(own[x]);
          colour.push(255 * shade[x]);
        }
      }
    }
  }
  return { position, normal, colour, index };
}

// Of a surface of so many triangles no edges are drawn: they would cover it.
const MOST_EDGED = 6000;

function edgesOf({ position, index }) {
  if (!index.length || index.length > 3 * MOST_EDGED) return [];
  const made = new THREE.BufferGeometry();
  made.setAttribute("position", new THREE.BufferAttribute(new Float32Array(position), 3));
  made.setIndex(index);
  return new THREE.EdgesGeometry(made, 35).getAttribute("position").array;
}

// All surfaces that move are one, drawn at once: each vertex has the number of its part, and a
// texture the frame of each part (its columns), with the colour that its verdict gives it.
class Parts {
  constructor(world, plain) {
    this.world = world;
    this.plain = plain;
    this.all = [];
  }

  add(solids) {
    this.all.push(surface(solids));
    return this.all.length - 1;
  }

  finish() {
    const count = Math.max(this.all.length, 1);
    this.frames = new Float32Array(16 * count);
    this.texture = new THREE.DataTexture(
      this.frames, 4, count, THREE.RGBAFormat, THREE.FloatType);
    const lambert = new THREE.MeshLambertMaterial({
      vertexColors: true, side: THREE.DoubleSide, polygonOffset: true, polygonOffsetFactor: 1,
      polygonOffsetUnits: 1,
    });
    const edges = this.plain && this.all.length > MANY_PARTS ? [] : this.all.map(edgesOf);
    let start = 0;
    const index = this.all.flatMap((own) => {
      const moved = own.index.map((k) => k + start);
      start += own.position.length / 3;
      return moved;
    });
    this.put(THREE.Mesh, lambert, {
      position: [this.all.map((own) => own.position), Float32Array, false],
      normal: [this.all.map((own) => own.normal), Float32Array, false],
      color: [this.all.map((own) => own.colour), Uint8Array, true],
    }, index);
    this.put(THREE.LineSegments, new THREE.LineBasicMaterial({ color: BODY_EDGE }), {
      position: [edges, Float32Array, false],
    });
    // What was copied is not needed twice.
    this.all.length = 0;
  }

  put(kind, material, attributes, index = null) {
    const geometry = new THREE.BufferGeometry();
    const lengths = attributes.position[0].map((own) => own.length / 3);
    const total = lengths.reduce((x, y) => x + y, 0);
    if (!total) return;
    for (const [name, [arrays, type, normalised]] of Object.entries(attributes)) {
      const joined = new type(3 * total);
      let start = 0;
      for (const own of arrays) {
        joined.set(own, start);
        start += own.length;
      }
      geometry.setAttribute(name, new THREE.BufferAttribute(joined, 3, normalised));
    }
    const part = new Float32Array(total);
    let start = 0;
    lengths.forEach((length, k) => { part.fill(k, start, start += length); });
    geometry.setAttribute("part", new THREE.BufferAttribute(part, 1));
    if (index) geometry.setIndex(index);
    this.pose(material);
    const mesh = new kind(geometry, material);
    mesh.frustumCulled = false;
    this.world.add(mesh);
  }

  pose(material) {
    material.onBeforeCompile = (shader) => {
      shader.uniforms.frames = { value: this.texture };
      shader.vertexShader = shader.vertexShader
        .replace("void main() {", `
          attribute float part;
          uniform highp sampler2D frames;
          void main() {
            int row = int(part + 0.5);
            vec4 c0 = texelFetch(frames, ivec2(0, row), 0), c1 = texelFetch(frames, ivec2(1, row), 0);
            vec4 c2 = texelFetch(frames, ivec2(2, row), 0), c3 = texelFetch(frames, ivec2(3, row), 0);
            mat3 turn = mat3(c0.xyz, c1.xyz, c2.xyz);`)
        .replace("#include <color_vertex>", `#include <color_vertex>
          #ifdef USE_COLOR
            if (c3.w > 0.5) vColor.rgb = vec3(c0.w, c1.w, c2.w);
          #endif`)
        .replace("#include <beginnormal_vertex>", "vec3 objectNormal = turn * normal;")
        .replace("#include <begin_vertex>", "vec3 transformed = turn * position + c3.xyz;");
    };
  }

  // The frame of a part, and its colour where it is not that of its surface.
  set(k, { elements }, colour) {
    this.frames.set(elements, 16 * k);
    for (const i of [0, 1, 2]) this.frames[16 * k + 4 * i + 3] = colour ? colour[i] : 0;
    this.frames[16 * k + 15] = colour ? 1 : 0;
  }
}

function makeBodies(world, parts) {
  return data.bodies.map((body) => {
    const object = new THREE.Group();
    object.name = body.name;
    object.matrixAutoUpdate = false;
    world.add(object);
    return {
      name: body.name, object, at: [0, 0, 0], part: parts.add(body.solids),
      position: steady(body.position, 3), rotation: steady(body.rotation, 4),
    };
  });
}

const channels = (hex) => [1, 3, 5].map((i) => linear(parseInt(hex.slice(i, i + 2), 16) / 255));
const VERDICTS = [channels(MANY), channels(GOOD)];

function makeSymbols(world, bodies, parts) {
  return data.symbols.map((symbol) => {
    const object = new THREE.Group();
    object.matrixAutoUpdate = false;
    (symbol.parent < 0 ? world : bodies[symbol.parent].object).add(object);
    return {
      ...symbol, object, part: parts.add(symbol.solids),
      position: steady(symbol.position, 3), rotation: steady(symbol.rotation, 4),
    };
  });
}

// The points at which joints act, each with its mark and its names.
function makePlaces(world, bodies, addLabel) {
  return data.places.map((own) => {
    const at = [0, 0, 0];
    const label = addLabel("joint", own.joints.map((j) => joints[j].name).join(", "), at);
    const parent = own.parent < 0 ? null : bodies[own.parent].object;
    return { ...own, parent, at, label, unique: true, position: steady(own.position, 3) };
  });
}

function place({ object, position, rotation }, state) {
  const i = position.length > 3 ? 3 * state : 0, j = rotation.length > 4 ? 4 * state : 0;
  from.fromArray(position, i);
  turn.fromArray(rotation, j);
  object.matrix.compose(from, turn, ONE);
  object.matrixWorldNeedsUpdate = true;
}

// --- Marks of verdicts, of one size on the screen, above everything ------------------------------

function texture(paint) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext("2d");
  pen.lineJoin = "round";
  paint(pen);
  const made = new THREE.CanvasTexture(canvas);
  made.colorSpace = THREE.SRGBColorSpace;
  return made;
}

const dotOf = (pen) => {
  pen.beginPath();
  pen.arc(32, 32, 24, 0, 2 * Math.PI);
  pen.fillStyle = GOOD;
  pen.fill();
  pen.lineWidth = 8;
  pen.strokeStyle = "#000";
  pen.stroke();
};
const diamondOf = (pen) => {
  pen.beginPath();
  for (const [x, y] of [[32, 3], [61, 32], [32, 61], [3, 32]]) pen.lineTo(x, y);
  pen.closePath();
  pen.fillStyle = MANY;
  pen.fill();
  pen.lineWidth = 4;
  pen.strokeStyle = "#000";
  pen.stroke();
  pen.beginPath();
  for (const [x, y] of [[23, 23], [41, 41], [41, 23], [23, 41]]) {
    if (y === 23) pen.moveTo(x, y);
    else pen.lineTo(x, y);
  }
  pen.lineWidth = 7;
  pen.strokeStyle = "#fff";
  pen.stroke();
};
const squareOf = (pen) => {
  pen.lineWidth = 7;
  pen.strokeStyle = "#000";
  pen.strokeRect(6, 6, 52, 52);
};

function marks(world, paint, pixels, order, count) {
  const geometry = new THREE.BufferGeometry();
  const attribute = new THREE.BufferAttribute(new Float32Array(3 * Math.max(count, 1)), 3);
  geometry.setAttribute("position", attribute.setUsage(THREE.DynamicDrawUsage));
  const material = new THREE.PointsMaterial({
    map: texture(paint), size: pixels, sizeAttenuation: false, alphaTest: 0.4,
    depthTest: false, depthWrite: false,
  });
  const points = new THREE.Points(geometry, material);
  points.frustumCulled = false;
  points.renderOrder = order;
  world.add(points);
  return (places) => {
    places.forEach((own, k) => attribute.setXYZ(k, ...own));
    attribute.needsUpdate = true;
    geometry.setDrawRange(0, places.length);
    points.visible = places.length > 0;
  };
}

// --- Axes with their scale -----------------------------------------------------------------------

const halves = [0, 1, 2].map((k) =>
  0.5 * (data.high[k] - data.low[k]) + (planar && k === 2 ? 0.0 : 0.14 * size));

function niceStep(span) {
  const raw = span / 8, power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5].find((x) => x * power >= raw) ?? 10);
}

function makeAxes(world, addLabel) {
  const step = niceStep(2 * Math.max(...halves));
  const ticks = [0, 1, 2].map((k) => {
    const first = Math.ceil((middle[k] - halves[k]) / step);
    const last = Math.floor((middle[k] + halves[k]) / step);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
  });
  const [ex, ey, ez] = halves, floor = planar ? -0.05 * size : -ez;
  const lines = [];
  for (const x of ticks[0]) lines.push([x - middle[0], -ey, floor], [x - middle[0], ey, floor]);
  for (const y of ticks[1]) lines.push([-ex, y - middle[1], floor], [ex, y - middle[1], floor]);
  // The edges on which numbers stand.
  lines.push([-ex, -ey, floor], [ex, -ey, floor], [-ex, -ey, floor], [-ex, ey, floor]);
  if (!planar) lines.push([-ex, ey, -ez], [-ex, ey, ez]);
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(lines.flat()), 3));
  const grid = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: GRID }));
  grid.renderOrder = -1;
  world.add(grid);
  const rounded = (x) => String(Number((Math.round(x / step) * step).toPrecision(6)));
  const edge = [
    (x) => [x, -ey, floor], (y) => (planar ? [-ex, y, floor] : [ex, y, floor]),
    (z) => [-ex, ey, z],
  ];
  ticks.forEach((own, k) => {
    if (planar && k === 2) return;
    const side = [{ down: 1 }, planar ? { left: 1 } : { down: 1 }, { left: 1 }][k];
    own.forEach((x) => addLabel("tick", rounded(x), edge[k](x - middle[k]), side));
    addLabel("axis", `${"xyz"[k]} (m)`, edge[k](halves[k]), { ends: true, up: k === 2 || planar && k === 1 });
  });
}

// --- Names: texts that stand above the drawing ---------------------------------------------------

function makeLabels(holder) {
  const layer = document.createElement("div");
  layer.className = "labels";
  // The picture's own description stands for all of them.
  layer.setAttribute("aria-hidden", "true");
  holder.append(layer);
  const all = [];
  const add = (kind, text, position, side = {}) => {
    const element = document.createElement("span");
    element.className = kind;
    element.textContent = text;
    layer.append(element);
    const own = { kind, element, at: position, side, wide: 0, high: 0, seen: false, on: true };
    all.push(own);
    return own;
  };
  return { all, add };
}

const projected = new THREE.Vector3();

// Names that would cover each other are left out, those that stand already last.
function placeLabels() {
  const { camera, width, height, labels } = stage;
  const taken = [];
  const order = [...labels.all].sort((a, b) => rankOf(a) - rankOf(b));
  for (const own of order) {
    projected.fromArray(own.at).project(camera);
    let visible = own.on && Math.abs(projected.z) <= 1;
    if (visible) {
      if (!own.wide) {
        own.element.style.display = "block";
        own.wide = own.element.offsetWidth;
        own.high = own.element.offsetHeight;
      }
      const x = 0.5 * width * (1 + projected.x), y = 0.5 * height * (1 - projected.y);
      const [left, top] = corner(own, x, y);
      const [right, bottom] = [left + own.wide, top + own.high];
      visible = left > -own.wide && top > -own.high && left < width && top < height
        && !taken.some((r) => left < r[2] && right > r[0] && top < r[3] && bottom > r[1]);
      if (visible) {
        taken.push([left, top, right, bottom]);
        own.element.style.transform = `translate(${left.toFixed(1)}px, ${top.toFixed(1)}px)`;
      }
    }
    if (visible !== own.seen || !own.drawn) {
      own.element.style.display = visible ? "block" : "none";
      own.drawn = true;
    }
    own.seen = visible;
  }
}

const RANKS = { many: 0, joint: 2, axis: 4, body: 5, tick: 7 };
const rankOf = ({ kind, seen }) => RANKS[kind] - (seen ? 0.5 : 0);

// Names of joints stand on the far side of their joint, seen from the middle of all of them.
function corner({ kind, side, wide, high }, x, y) {
  const gap = 9;
  if (kind === "body") return [x - 0.5 * wide, y + 4];
  if (kind === "joint" || kind === "many") {
    return [side.left ? x - wide - gap : x + gap, side.down ? y + 3 : y - high - 3];
  }
  if (side.ends) return side.up ? [x - 0.5 * wide, y - high - 2] : [x + 6, y - 0.5 * high];
  if (side.left) return [x - wide - 4, y - 0.5 * high];
  return [x - 0.5 * wide, y + 4];
}

// --- The stage -----------------------------------------------------------------------------------

const scene = byId("scene");
let stage = null;

// Where the processor draws, smooth edges double the time of a frame, and lines along edges add a
// fifth: these are then left out in space, where light shows shapes, of so many parts.
const MANY_PARTS = 60;

function drawsInSoftware() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const more = gl && gl.getExtension("WEBGL_debug_renderer_info");
  const name = more ? String(gl.getParameter(more.UNMASKED_RENDERER_WEBGL)) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

function makeStage() {
  let renderer;
  const software = drawsInSoftware();
  try {
    renderer = new THREE.WebGLRenderer({ antialias: !software, alpha: false });
  } catch {
    return null;
  }
  renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
  renderer.setClearColor("#ffffff");
  renderer.domElement.setAttribute("aria-hidden", "true");
  scene.append(renderer.domElement);
  const world = new THREE.Scene();
  world.matrixAutoUpdate = false;
  const sky = new THREE.AmbientLight("#ffffff", 1.6), sun = new THREE.DirectionalLight("#fff", 1.9);
  world.add(sky, sun);
  const labels = makeLabels(scene);
  makeAxes(world, labels.add);
  const parts = new Parts(world, software && !planar);
  const bodies = makeBodies(world, parts), symbols = makeSymbols(world, bodies, parts);
  parts.finish();
  const places = makePlaces(world, bodies, labels.add);
  const named = bodies.filter(({ name }) => name !== "ground");
  for (const body of named) body.label = labels.add("body", body.name, body.at);
  const forces = {
    bars: new Rods(world, RANGE, 2),
    boxes: new Rods(world, MANY, 3),
    unbounded: new Rods(world, MANY, 3),
    shafts: new Rods(world, INK, 4),
    heads: new Rods(world, INK, 4),
  };
  const lines = new Rods(world, ROPE, 1, false);
  const strands = data.strands.map((own) => ({ ...own, points: steady(own.points, 3 * own.count) }));
  const count = places.length;
  const marked = {
    grounded: marks(world, squareOf, 15, 5, count),
    good: marks(world, dotOf, count > 24 ? 8 : 10, 6, count),
    many: marks(world, diamondOf, count > 24 ? 14 : 21, 7, count),
  };
  const camera = planar
    ? new THREE.OrthographicCamera(-1, 1, 1, -1, 0.01 * size, 20 * size)
    : new THREE.PerspectiveCamera(30, 1, 0.005 * size, 40 * size);
  camera.up.set(0, planar ? 1 : 0, planar ? 0 : 1);
  const controls = new THREE.OrbitControls(camera, scene);
  controls.enableRotate = !planar;
  controls.zoomToCursor = true;
  if (planar) {
    controls.mouseButtons = { LEFT: THREE.MOUSE.PAN, MIDDLE: THREE.MOUSE.DOLLY };
    controls.touches = { ONE: THREE.TOUCH.PAN, TWO: THREE.TOUCH.DOLLY_PAN };
  }
  controls.listenToKeyEvents(scene);
  return {
    renderer, world, camera, controls, sun, parts, labels, bodies, symbols, forces, lines, strands, marked,
    places, width: 0, height: 0, asked: false,
  };
}

// From where it is seen at first, and how far everything is then.
function resetView() {
  const { camera, controls, width, height } = stage;
  const way = new THREE.Vector3(...(planar ? [0, 0, 1] : [0.53, -0.74, 0.41])).normalize();
  const aspect = width / height, corners = [];
  for (const x of [-1, 1]) for (const y of [-1, 1]) for (const z of [-1, 1]) {
    corners.push(new THREE.Vector3(x * halves[0], y * halves[1], z * halves[2]));
  }
  let distance = 4 * size;
  if (!planar) {
    const right = new THREE.Vector3().crossVectors(camera.up, way).normalize();
    const up = new THREE.Vector3().crossVectors(way, right);
    const tangent = Math.tan((0.5 * camera.fov * Math.PI) / 180) * 0.93;
    distance = Math.max(...corners.map((c) => c.dot(way)
      + Math.max(Math.abs(c.dot(right)) / (tangent * aspect), Math.abs(c.dot(up)) / tangent)));
  }
  camera.position.copy(way).multiplyScalar(distance);
  camera.zoom = 1;
  controls.target.set(0, 0, 0);
  resize();
  controls.update();
}

function resize() {
  const { renderer, camera, width, height } = stage;
  renderer.setSize(width, height, false);
  const aspect = width / height;
  if (planar) {
    // Room for the numbers beside the axes.
    const half = Math.max(1.13 * halves[1], (1.13 * halves[0]) / aspect);
    Object.assign(camera, { left: -half * aspect, right: half * aspect, top: half, bottom: -half });
  } else camera.aspect = aspect;
  camera.updateProjectionMatrix();
}

function draw() {
  const { renderer, world, camera, sun } = stage;
  stage.asked = false;
  // The light comes from beside whoever looks.
  sun.position.set(-0.35, 0.5, 1).applyQuaternion(camera.quaternion);
  renderer.render(world, camera);
  placeLabels();
}

function ask() {
  if (!stage || stage.asked) return;
  stage.asked = true;
  requestAnimationFrame(() => { if (stage.asked) draw(); });
}

// Where names of joints stand, from their places at the first state.
function turnLabels() {
  const { camera, places } = stage;
  for (const { label, first } of places) {
    projected.fromArray(first).project(camera);
    label.side = { left: projected.x < -0.02, down: projected.y < -0.02 };
  }
}

function setState(state) {
  const { bodies, symbols, places, forces, lines, strands, marked, world, parts } = stage;
  const unique = (j) => jointVerdicts[state * joints.length + j] === UNIQUE;
  for (const body of bodies) {
    place(body, state);
    for (const i of [0, 1, 2]) body.at[i] = body.object.matrix.elements[12 + i];
  }
  for (const symbol of symbols) place(symbol, state);
  world.updateMatrixWorld();
  for (const { part, object } of bodies) parts.set(part, object.matrixWorld, null);
  for (const { part, object, constraints } of symbols) {
    parts.set(part, object.matrixWorld, VERDICTS[constraints.every(unique) ? 1 : 0]);
  }
  parts.texture.needsUpdate = true;
  for (const own of places) {
    from.fromArray(own.position, own.position.length > 3 ? 3 * state : 0);
    if (own.parent) from.applyMatrix4(own.parent.matrix);
    from.toArray(own.at);
    own.unique = own.joints.every(unique);
    const kind = own.unique ? "joint" : "many";
    if (own.label.kind !== kind) {
      own.label.kind = own.label.element.className = kind;
      own.label.wide = 0;
    }
  }
  const points = (test) => places.filter(test).map((own) => own.at);
  marked.grounded(points((own) => own.grounded));
  marked.good(points((own) => own.unique));
  marked.many(points((own) => !own.unique));
  loads(state, forces);
  lines.clear();
  for (const { kind, points: track, count } of strands) {
    const radius = (THICK[kind] ?? 0.0016) * size;
    for (let k = 1; k < count; k += 1) {
      const ends = [at(track, count, state, k - 1), at(track, count, state, k)];
      if (ends.flat().every(Number.isFinite)) lines.put(...ends, radius);
    }
  }
  lines.finish();
}

function makeScene() {
  stage = makeStage();
  if (!stage) {
    byId("no-webgl").hidden = false;
    scene.hidden = true;
    return;
  }
  setState(0);
  for (const own of stage.places) own.first = [...own.at];
  const measure = () => {
    [stage.width, stage.height] = [Math.max(scene.clientWidth, 1), Math.max(scene.clientHeight, 1)];
  };
  measure();
  resetView();
  turnLabels();
  stage.controls.addEventListener("change", () => {
    turnLabels();
    ask();
  });
  scene.addEventListener("keydown", ({ key }) => {
    const by = { "+": 1.15, "=": 1.15, "-": 1 / 1.15 }[key];
    if (!by) return;
    stage.camera.zoom *= by;
    stage.camera.updateProjectionMatrix();
    ask();
  });
  new ResizeObserver(() => {
    if (scene.clientWidth === stage.width && scene.clientHeight === stage.height) return;
    measure();
    resize();
    ask();
  }).observe(scene);
  stage.renderer.domElement.addEventListener("webglcontextrestored", ask);
  window.addEventListener("beforeprint", draw);
  draw();
  // What is drawn, to be read by whoever looks from outside.
  window.mechanism = { stage, middle, show: (state) => show(state), draw, bar, box };
}

function drawScene(state) {
  if (!stage) return;
  setState(state);
  draw();
}

function nameThem(which) {
  for (const { label } of stage.places) label.on = which !== "none";
  for (const { label } of stage.bodies) if (label) label.on = which === "all";
}
