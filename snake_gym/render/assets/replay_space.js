"use strict";
// View in space, with three.js. One WebGL renderer draws for all panels, and each panel's canvas takes its picture over;
// all are seen from the same side. Frame: x and y as seen from above, z up, metres.
const FIELD_OF_VIEW = Math.PI / 5, FRONT = { turn: -2.0, rise: 0.65, zoom: 1, shift: [0, 0] };
let renderer = null, refused = "", begun = null, orbit = { ...FRONT };

// Unpack the library and make the renderer, once. Returns whether there is one; if not, ``refused`` says why.
const beginSpace = async () => { await (begun = begun || makeRenderer()); return !refused; };

async function makeRenderer() {
  try {
    if (!window.DecompressionStream) throw new Error("this browser cannot unpack the library");
    const packed = Uint8Array.from(atob(byId("three").textContent), c => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    const canvas = document.createElement("canvas"), options = { antialias: true };
    const context = canvas.getContext("webgl2", options) || canvas.getContext("webgl", options);
    if (!context) throw new Error("this browser has no WebGL");
    renderer = new THREE.WebGLRenderer({ canvas, context, antialias: true });
    renderer.shadowMap.enabled = true;
    canvas.addEventListener("webglcontextlost", () => { refused = "WebGL was lost"; setSpace(true); });
  } catch (error) { refused = error.message; }
}

// Free what a panel holds; it is made anew when it is drawn.
function forgetSpace(panel) {
  if (!panel.space) return;
  panel.space.scene.traverse(o => { if (o.geometry) { o.geometry.dispose(); o.material.dispose(); } });
  panel.space = null;
}

const paint = (colour, more) => new THREE.MeshLambertMaterial({ color: colour, ...more });
const glow = (colour, more) => new THREE.MeshBasicMaterial({ color: colour, ...more });

function mesh(parent, geometry, material, shadow = true) {
  const made = new THREE.Mesh(geometry, material);
  made.castShadow = made.receiveShadow = shadow;
  parent.add(made);
  return made;
}

// Rod of length 1 along y, which ``lay`` puts between two places; ``tip``: the share of its radius that the end has.
const rod = (parent, material, tip = 1) =>
  mesh(parent, new THREE.CylinderGeometry(tip, 1, 1, 10), material, false);

function lay(one, from, to, radius) {
  const a = new THREE.Vector3(...from), d = new THREE.Vector3(...to).sub(a), length = d.length();
  one.visible = length > 1e-6;
  if (!one.visible) return;
  one.position.copy(a).addScaledVector(d, 0.5);
  one.scale.set(radius, length, radius);
  one.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), d.divideScalar(length));
}

// Flat band along places (x, y, z): three.js draws lines one pixel wide.
function band(parent, places, width, material) {
  const corners = [], index = [];
  let nx = 0, ny = 1;
  places.forEach(([x, y, z], k) => {
    const [ax, ay] = places[Math.max(k - 1, 0)], [bx, by] = places[Math.min(k + 1, places.length - 1)];
    const d = Math.hypot(bx - ax, by - ay);
    if (d > 1e-9) { nx = -(by - ay) / d; ny = (bx - ax) / d; }
    const half = width / 2;
    corners.push(x + half * nx, y + half * ny, z, x - half * nx, y - half * ny, z);
    if (k > 0) index.push(2 * k - 2, 2 * k - 1, 2 * k, 2 * k - 1, 2 * k + 1, 2 * k);
  });
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(corners, 3));
  geometry.setIndex(index);
  material.side = THREE.DoubleSide;
  const made = mesh(parent, geometry, material, false);
  made.frustumCulled = false;
  return made;
}

// What a policy's panel shows: built once, moved by drawSpace.
function buildSpace(policy) {
  const scene = new THREE.Scene(), body = policy.body, n = policy.half_mm.length;
  const mean = policy.half_mm.reduce((a, b) => a + b, 0) / n / 1000, length = 2 * n * mean;
  const [width, height] = body ? body.section_mm.map(v => v / 1000) : [0.84 * mean, 0.84 * mean];
  scene.background = new THREE.Color(colours.card);
  scene.add(new THREE.HemisphereLight(0xffffff, 0xb4b8bc, 0.62));
  const sun = new THREE.DirectionalLight(0xffffff, 0.45);
  sun.castShadow = true;
  sun.shadow.mapSize.set(1024, 1024);
  Object.assign(sun.shadow.camera, { left: -length, right: length, top: length, bottom: -length,
                                     near: 0.1 * length, far: 6 * length });
  sun.shadow.normalBias = 0.1 * width;
  scene.add(sun, sun.target);
  const space = { scene, sun, length, width, height, links: [], joints: [], rings: [], targets: [], forces: [] };
  buildGround(space, body);
  for (let k = 0; k < n; k++) {
    const head = k === n - 1, size = head ? 1.15 : 1, full = policy.half_mm[k] / 500, holder = new THREE.Group();
    const colour = paint(head ? policy.colour : colours.body);
    if (body && body.rounded) {
      const bar = new THREE.CapsuleGeometry(size * height / 2, Math.max(full - height, 0.2 * full), 6, 16);
      mesh(holder, bar.rotateZ(-Math.PI / 2), colour);
    } else mesh(holder, new THREE.BoxGeometry(full - (head ? 0.2 : 0.45) * width, size * width, size * height), colour);
    if (head) for (const side of [-1, 1]) {
      const eye = mesh(holder, new THREE.SphereGeometry(0.16 * width, 12, 8), paint("#ffffff"));
      eye.position.set(0.42 * full, side * 0.36 * width, 0.5 * height);
    }
    scene.add(holder);
    space.links.push(holder);
    if (head) break;
    const holderJ = new THREE.Group(), pin = mesh(holderJ, new THREE.CylinderGeometry(1, 1, 1, 24), paint("#dce3e8"));
    const ring = mesh(holderJ, new THREE.TorusGeometry(0.72 * width, 0.1 * width, 8, 28), paint(colours.beyond));
    // The pin lies along the joint's axis: y of three.js' cylinder is turned to z for a yaw joint.
    const yaw = !body || body.axis[k] === "z";
    if (yaw) pin.rotation.x = Math.PI / 2; else ring.rotation.x = Math.PI / 2;
    ring.position.set(0, 0, yaw ? 0.5 * height : 0);
    scene.add(holderJ);
    space.joints.push({ holder: holderJ, pin });
    space.rings.push(ring);
  }
  const places = body ? body.at_mm.map(at => at[n - 1].map(v => v / 1000))
    : policy.point_mm.map(p => [...metres(p), 0.012 * mean]);
  space.trail = band(scene, places, 0.16 * width, glow(policy.colour, { transparent: true, opacity: 0.6 }));
  policy.targets_mm.map(metres).forEach(p => {
    const radius = Math.max(policy.radius_mm / 1000, 0.02 * length);
    const disc = mesh(scene, new THREE.CylinderGeometry(radius, radius, 0.01 * mean, 40),
                      glow(colours.muted, { transparent: true, depthWrite: false }), false);
    disc.rotation.x = Math.PI / 2;
    disc.position.set(...p, groundAt(body, ...p) + 0.03 * mean);
    space.targets.push(disc);
  });
  space.ball = mesh(scene, new THREE.SphereGeometry(0.6 * width, 20, 14), paint(colours.goal));
  space.sight = rod(scene, glow(colours.goal));
  if (policy.around) buildSurroundings(space, policy, n);
  space.camera = new THREE.PerspectiveCamera(FIELD_OF_VIEW * 180 / Math.PI, 1, 0.01, 1000);
  space.camera.up.set(0, 0, 1);
  return space;
}

// Height of the nearest point of a field of heights; 0 on a plane.
function groundAt(body, x, y) {
  if (!body || !body.heights_mm) return 0;
  const nearest = (at, middle, size, count) =>
    Math.min(Math.max(Math.round(((at * 1000 - middle) / size + 0.5) * (count - 1)), 0), count - 1);
  const row = body.heights_mm[nearest(y, body.middle_mm[1], body.size_mm[1], body.heights_mm.length)];
  return row[nearest(x, body.middle_mm[0], body.size_mm[0], row.length)] / 1000;
}

function buildGround(space, body) {
  const { scene, length } = space, plane = new THREE.Group();
  scene.add(plane);
  if (body && body.heights_mm) {
    const rows = body.heights_mm.length, columns = body.heights_mm[0].length;
    const [across, deep] = body.size_mm.map(v => v / 1000), [x, y] = metres(body.middle_mm);
    const field = new THREE.PlaneGeometry(across, deep, columns - 1, rows - 1), places = field.attributes.position;
    // three.js begins with the row of the largest y.
    for (let i = 0; i < rows; i++) for (let k = 0; k < columns; k++)
      places.setZ((rows - 1 - i) * columns + k, body.heights_mm[i][k] / 1000);
    field.computeVertexNormals();
    mesh(plane, field, paint(colours.rock, { flatShading: true })).position.set(x, y, 0);
  } else {
    const floor = mesh(plane, new THREE.PlaneGeometry(1, 1), paint(colours.card, { depthWrite: false }));
    floor.renderOrder = -2;  // below everything, whatever the precision of depth
    floor.scale.set(400 * length, 400 * length, 1);
    const lines = [], step = [0.1, 0.25, 0.5, 1, 2, 5].find(s => s >= 0.25 * length) || 10, reach = 20;
    // Piece by piece: some renderers drop a line that begins behind the camera.
    for (let k = -reach; k <= reach; k++) for (let i = -reach; i < reach; i++)
      for (const [x, y, dx, dy] of [[k, i, 0, 1], [i, k, 1, 0]])
        lines.push(x * step, y * step, 0, (x + dx) * step, (y + dy) * step, 0);
    const grid = new THREE.BufferGeometry();
    grid.setAttribute("position", new THREE.Float32BufferAttribute(lines, 3));
    space.grid = new THREE.LineSegments(grid, new THREE.LineBasicMaterial({ color: colours.muted, transparent: true,
                                                                             opacity: 0.4, depthWrite: false }));
    space.grid.renderOrder = -1;
    space.grid.frustumCulled = false;
    space.step = step;
    plane.add(space.grid);
  }
  for (const place of body ? body.poles_mm : []) {
    const [x, y, z, radius, half] = place.map(v => v / 1000);
    const pole = new THREE.CylinderGeometry(radius, radius, 2 * half, 40).rotateX(Math.PI / 2);
    mesh(scene, pole, paint(colours.rock)).position.set(x, y, z);
  }
}

function buildSurroundings(space, policy, n) {
  const { scene, width, height } = space, around = policy.around, high = 1.6 * height, rock = () => paint(colours.rock);
  const post = (x, y, r) => {
    const made = mesh(scene, new THREE.CylinderGeometry(r, r, high, 28), rock());
    made.rotation.x = Math.PI / 2;
    made.position.set(x, y, high / 2);
  };
  for (const bar of policy.body ? [] : around.bars_mm) {  // the ground of a body has its poles
    const [x0, y0, x1, y1, r] = bar.map(v => v / 1000), d = Math.hypot(x1 - x0, y1 - y0), thick = Math.max(r, 0.04 * width);
    post(x0, y0, thick);
    if (d === 0) continue;
    post(x1, y1, thick);
    const wall = mesh(scene, new THREE.BoxGeometry(d, 2 * thick, high), rock());
    wall.position.set((x0 + x1) / 2, (y0 + y1) / 2, high / 2);
    wall.rotation.z = Math.atan2(y1 - y0, x1 - x0);
  }
  for (const corners of around.polygons_mm) {
    const shape = new THREE.Shape(corners.map(c => new THREE.Vector2(...metres(c))));
    mesh(scene, new THREE.ExtrudeGeometry(shape, { depth: high, bevelEnabled: false }), rock());
  }
  band(scene, around.route_mm.map(p => [...metres(p), 0.03 * height]), 0.14 * width,
       glow(colours.reached, { transparent: true, opacity: 0.7 }));
  const beams = new THREE.BufferGeometry();
  beams.setAttribute("position", new THREE.Float32BufferAttribute(new Float32Array(6 * around.beam_mrad.length), 3));
  space.beams = new THREE.LineSegments(beams, new THREE.LineBasicMaterial({ color: colours.beam, transparent: true,
                                                                            opacity: 0.5 }));
  space.beams.frustumCulled = false;
  scene.add(space.beams);
  for (let k = 0; k < n; k++) space.forces.push(rod(scene, glow(colours.force), 0.15));
}

// Positions [m] and orientations (w, x, y, z) of the links.
function linkPoses(policy, s, body, height) {
  if (s.at) return s.at.map((at, k) => ({ at, turn: s.turn[k] }));
  return s.angle.map((a, k) => ({
    at: [(body[k][0] + body[k + 1][0]) / 2, (body[k][1] + body[k + 1][1]) / 2, height / 2],
    turn: [Math.cos(a / 2), 0, 0, Math.sin(a / 2)],
  }));
}

function drawSpace(panel, s, body, g, w, h) {
  const policy = panel.policy, space = panel.space || (panel.space = buildSpace(policy));
  const { width, height, length } = space, poses = linkPoses(policy, s, body, height), out = beyond(policy, s);
  poses.forEach(({ at, turn }, k) => {
    space.links[k].position.set(...at);
    space.links[k].quaternion.set(turn[1], turn[2], turn[3], turn[0]);
  });
  space.joints.forEach(({ holder, pin }, k) => {
    const kind = s.kinds[k], link = space.links[k], size = (kind ? 0.62 : out[k] ? 0.5 : 0.3) * width;
    holder.quaternion.copy(link.quaternion);
    holder.position.set(policy.half_mm[k] / 1000, 0, 0).applyQuaternion(link.quaternion).add(link.position);
    pin.scale.set(size, 1.18 * height, size);
    pin.material.color.set(kind ? data.faults[kind].colour : out[k] ? colours.beyond : "#dce3e8");
    space.rings[k].visible = out[k];
  });
  space.trail.geometry.setDrawRange(0, 6 * s.row);
  space.targets.forEach((disc, k) => {
    disc.material.color.set(k < s.target ? colours.reached : k === s.target ? colours.goal : colours.muted);
    disc.material.opacity = k < s.target ? 0.5 : k === s.target ? 0.6 : 0.25;
  });
  const head = poses[poses.length - 1].at, around = policy.around;
  const done = s.target >= policy.targets_mm.length && policy.targets_mm.length > 0;
  const aim = done ? null : around ? around.aim_mm[s.row] : policy.targets_mm[s.target];
  space.ball.visible = space.sight.visible = Boolean(aim);
  if (aim) {
    const eye = [head[0], head[1], head[2] + 0.7 * height], ball = [...metres(aim), groundAt(policy.body, ...metres(aim)) + 0.9 * height];
    space.ball.position.set(...ball);
    lay(space.sight, eye, ball, 0.08 * width);
  }
  if (around) {
    const places = space.beams.geometry.attributes.position, ahead = s.angle[s.angle.length - 1];
    around.beam_mrad.forEach((b, k) => {
      const d = around.range_mm[s.row][k] / 1000, a = ahead + b / 1000;
      places.setXYZ(2 * k, ...head);
      places.setXYZ(2 * k + 1, head[0] + d * Math.cos(a), head[1] + d * Math.sin(a), head[2]);
    });
    places.needsUpdate = true;
    space.forces.forEach((arrow, k) => {
      const from = [poses[k].at[0], poses[k].at[1], poses[k].at[2] + 0.75 * height];
      const [x, y] = metres(around.arrow_mm[s.row][k]);
      lay(arrow, from, [from[0] + x, from[1] + y, from[2]], 0.12 * width);
      if (Math.hypot(x, y) < 0.1 * width) arrow.visible = false;
    });
  }
  aimCamera(panel, space, poses, w / h);
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  renderer.setPixelRatio(ratio);
  renderer.setSize(w, h, false);
  renderer.render(space.scene, space.camera);
  g.drawImage(renderer.domElement, 0, 0, w, h);
}

// The camera looks at the middle of what the view from above shows, from the side that the user has turned to.
function aimCamera(panel, space, poses, aspect) {
  const { camera, sun, length } = space, [cx, cy] = panel.view.centre, rise = orbit.rise;
  const high = poses.reduce((sum, p) => sum + p.at[2], 0) / poses.length;
  const far = 0.8 * panel.view.view * orbit.zoom / (2 * Math.tan(FIELD_OF_VIEW / 2));
  const c = Math.cos(orbit.turn), d = Math.sin(orbit.turn), [right, away] = orbit.shift.map(v => v * panel.view.view);
  const x = cx - right * d - away * c, y = cy + right * c - away * d;
  camera.aspect = aspect;
  camera.near = 0.05 * far; camera.far = 30 * far;
  camera.position.set(x + far * Math.cos(rise) * c, y + far * Math.cos(rise) * d, high + far * Math.sin(rise));
  camera.lookAt(x, y, high);
  camera.updateProjectionMatrix();
  if (space.grid) space.grid.position.set(...[x, y].map(v => 2 * space.step * Math.round(v / (2 * space.step))), 0);
  const middle = poses[poses.length >> 1].at;
  sun.target.position.set(...middle);
  sun.position.set(middle[0] - 1.0 * length, middle[1] - 0.6 * length, middle[2] + 2.5 * length);
}

// Drag, wheel and pinch turn, zoom and move the view of all panels.
function turnByHand(canvas) {
  const held = new Map();
  const redraw = () => { if (!playing) requestAnimationFrame(() => draw(true)); };
  const zoom = by => { orbit.zoom = Math.min(Math.max(orbit.zoom * by, 0.1), 10); redraw(); };
  const spread = () => { const [a, b] = [...held.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
  canvas.addEventListener("pointerdown", e => {
    if (!inSpace) return;
    canvas.setPointerCapture(e.pointerId);
    held.set(e.pointerId, [e.clientX, e.clientY]);
  });
  canvas.addEventListener("pointermove", e => {
    const before = held.get(e.pointerId);
    if (!inSpace || !before) return;
    const dx = e.clientX - before[0], dy = e.clientY - before[1], wide = held.size === 2 ? spread() : 0;
    held.set(e.pointerId, [e.clientX, e.clientY]);
    if (wide) { zoom(wide / Math.max(spread(), 1)); return; }
    if (e.shiftKey || e.buttons === 2) {
      orbit.shift = [orbit.shift[0] - dx / canvas.clientHeight, orbit.shift[1] + dy / canvas.clientHeight];
    } else {
      orbit.turn -= 0.008 * dx;
      orbit.rise = Math.min(Math.max(orbit.rise + 0.008 * dy, 0.02), 1.55);
    }
    redraw();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, e => held.delete(e.pointerId));
  canvas.addEventListener("wheel", e => { if (inSpace) { e.preventDefault(); zoom(1.001 ** e.deltaY); } }, { passive: false });
  canvas.addEventListener("contextmenu", e => { if (inSpace) e.preventDefault(); });
  canvas.addEventListener("dblclick", () => { if (inSpace) { orbit = { ...FRONT }; redraw(); } });
}
