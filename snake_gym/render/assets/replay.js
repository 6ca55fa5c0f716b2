"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const metres = mm => [mm[0] / 1000, mm[1] / 1000];
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let scene = null, panels = [], now = 0, playing = false, last = null, whole = false, colours = {}, inSpace = false;

function readColours() {
  for (const name of ["paper", "card", "ink", "muted", "grid", "faint", "line", "body", "reached", "goal", "rock",
                      "beam", "force", "beyond"])
    colours[name] = css("--" + name);
}

// A policy's state at time t [ms], between samples by linear interpolation.
function sampleAt(policy, t) {
  const times = policy.time_ms, n = times.length;
  let i = 0, j = n - 1;
  while (j - i > 1) { const k = (i + j) >> 1; if (times[k] <= t) i = k; else j = k; }
  if (n === 1) j = i = 0;
  const span = times[j] - times[i];
  const w = span > 0 ? Math.min(1, Math.max(0, (t - times[i]) / span)) : 0;
  const mix = (a, b) => a + w * (b - a);
  const row = w >= 1 ? j : i;
  let kinds = policy.faults[0][1];
  for (const [from, k] of policy.faults) if (from <= row) kinds = k;
  const angle = policy.angle_mrad[i].map((a, k) => mix(a, policy.angle_mrad[j][k]) / 1000);
  const pair = key => [0, 1].map(axis => mix(policy[key][i][axis], policy[key][j][axis]) / 1000);
  const s = { row, angle, head: pair("head_mm"), point: pair("point_mm"), target: policy.target[row], kinds,
              progress: mix(policy.progress_mm[i], policy.progress_mm[j]) / 1000 };
  if (!policy.body) return { ...s, joint: angle.slice(1).map((a, k) => a - angle[k]) };
  const { at_mm: at, turn, joint_mrad: joint } = policy.body;
  s.at = at[i].map((p, k) => p.map((v, axis) => mix(v, at[j][k][axis]) / 1000));
  s.turn = turn[i].map((q, k) => {
    const other = turn[j][k], sign = q.reduce((sum, v, c) => sum + v * other[c], 0) < 0 ? -1 : 1;
    const mixed = q.map((v, c) => mix(v, sign * other[c])), size = Math.hypot(...mixed) || 1;
    return mixed.map(v => v / size);
  });
  return { ...s, joint: joint[i].map((a, k) => mix(a, joint[j][k]) / 1000) };
}

// The joints that are further out than their limits, by more than what the page rounds.
const beyond = (policy, s) =>
  s.joint.map((a, k) => policy.limit_mrad[k] !== null && Math.abs(a) > (policy.limit_mrad[k] + 2) / 1000);

// Ends of the links seen from above, tail first.
function bodyPoints(policy, s) {
  const n = s.angle.length, points = new Array(n + 1);
  const half = k => policy.half_mm[k] / 1000;
  if (s.at) {
    const end = (k, side) => {
      const [w, x, y, z] = s.turn[k], d = side * half(k);
      return [s.at[k][0] + d * (1 - 2 * (y * y + z * z)), s.at[k][1] + d * 2 * (x * y + w * z)];
    };
    return [end(0, -1), ...s.at.map((_, k) => end(k, 1))];
  }
  const along = (p, k, d) => [p[0] + d * Math.cos(s.angle[k]), p[1] + d * Math.sin(s.angle[k])];
  points[n] = along(s.head, n - 1, half(n - 1));
  for (let k = n - 1; k >= 0; k--) points[k] = along(points[k + 1], k, -2 * half(k));
  return points;
}

function boxOf(points) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
  }
  return box;
}

function wantedView(panel, s, body, aspect) {
  const policy = panel.policy, length = 2 * policy.half_mm.reduce((a, b) => a + b, 0) / 1000;
  const goals = policy.targets_mm.map(metres);
  let points = body;
  if (whole) points = body.concat(...scene.policies.map(p => p.point_mm.concat(p.targets_mm).map(metres)));
  else if (s.target < goals.length) points = body.concat([goals[s.target]]);
  const box = boxOf(points), margin = 0.25 * length;
  const needed = Math.max(box[3] - box[1] + 2 * margin, (box[2] - box[0] + 2 * margin) / aspect);
  const view = whole ? needed : Math.min(Math.max(needed, 1.4 * length), 3.5 * length);
  const centre = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
  return { centre: whole ? centre : hold(body, length, centre, view, aspect), view, length };
}

// The centre, moved so that the view holds the whole robot.
function hold(body, length, centre, view, aspect) {
  const own = boxOf(body);
  return centre.map((c, k) => {
    const mid = (own[k] + own[k + 2]) / 2, room = (own[k + 2] - own[k]) / 2 + 0.1 * length;
    const reach = Math.max(view * (k === 0 ? aspect : 1) / 2 - room, 0);
    return Math.min(Math.max(c, mid - reach), mid + reach);
  });
}

function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  return [g, w, h];
}

function drawPanel(panel, ease) {
  const [g, w, h] = prepare(panel.canvas), policy = panel.policy;
  const s = sampleAt(policy, now), body = bodyPoints(policy, s), want = wantedView(panel, s, body, w / h);
  if (!panel.view || !ease) panel.view = want;
  else {
    const k = 0.08, v = panel.view;
    v.view += k * (want.view - v.view);
    v.centre = v.centre.map((c, i) => c + k * (want.centre[i] - c));
    if (!whole) v.centre = hold(body, want.length, v.centre, v.view, w / h);
  }
  panel.stats.textContent = `${s.progress.toFixed(2)} m    ${standing(policy, s)}`;
  if (inSpace) { drawSpace(panel, s, body, g, w, h); return; }
  const scale = h / panel.view.view, [cx, cy] = panel.view.centre;
  const px = p => [w / 2 + (p[0] - cx) * scale, h / 2 - (p[1] - cy) * scale];
  drawGrid(g, w, h, scale, cx, cy, px);
  if (policy.around) drawBelow(g, policy, s, scale, px);
  drawTargets(g, policy, s, scale, px);
  g.lineCap = g.lineJoin = "round";
  g.strokeStyle = policy.colour; g.globalAlpha = 0.55; g.lineWidth = 2;
  g.beginPath();
  for (let k = 0; k <= s.row; k++) g.lineTo(...px(metres(policy.point_mm[k])));
  g.lineTo(...px(s.point)); g.stroke(); g.globalAlpha = 1;
  drawBody(g, policy, s, body.map(px), scale);
  if (policy.around) drawForces(g, policy, s, body, px);
  drawArrow(g, policy, s, w, h, px);
  drawScale(g, w, h, scale, panel.view.view);
}

// How far the robot has got, in words.
function standing(policy, s) {
  if (!policy.targets_mm.length) return "";
  if (!policy.around) return `${s.target} target${s.target === 1 ? "" : "s"}`;
  const goal = metres(policy.targets_mm[0]);
  if (s.target > 0) return "goal reached";
  return `${Math.hypot(goal[0] - s.point[0], goal[1] - s.point[1]).toFixed(2)} m to the goal`;
}

function drawGrid(g, w, h, scale, cx, cy, px) {
  const step = scale > 45 ? 0.5 : scale > 18 ? 1 : 5;
  g.lineWidth = 1;
  for (const axis of [0, 1]) {
    const half = (axis === 0 ? w : h) / 2 / scale, c = axis === 0 ? cx : cy;
    for (let k = Math.ceil((c - half) / step); k * step <= c + half; k++) {
      g.strokeStyle = (k * step) % (2 * step) === 0 ? colours.grid : colours.faint;
      const at = px([k * step, k * step])[axis];
      g.beginPath();
      if (axis === 0) { g.moveTo(at, 0); g.lineTo(at, h); } else { g.moveTo(0, at); g.lineTo(w, at); }
      g.stroke();
    }
  }
}

// Obstacles, beams, route and the place to go to: what lies below the robot.
function drawBelow(g, policy, s, scale, px) {
  const around = policy.around, head = s.angle[s.angle.length - 1], start = px(s.head);
  const ends = around.beam_mrad.map((b, k) => {
    const d = around.range_mm[s.row][k] / 1000, a = head + b / 1000;
    return px([s.head[0] + d * Math.cos(a), s.head[1] + d * Math.sin(a)]);
  });
  g.strokeStyle = colours.beam; g.globalAlpha = 0.35; g.lineWidth = 1;
  g.beginPath(); for (const end of ends) { g.moveTo(...start); g.lineTo(...end); } g.stroke(); g.globalAlpha = 1;
  g.lineCap = g.lineJoin = "round"; g.fillStyle = colours.rock;
  for (const corners of around.polygons_mm) {
    g.beginPath(); corners.forEach(c => g.lineTo(...px(metres(c)))); g.closePath(); g.fill();
    g.strokeStyle = colours.muted; g.lineWidth = 1; g.stroke();
  }
  for (const inset of [0, 2]) for (const [x0, y0, x1, y1, r] of around.bars_mm) {
    const width = Math.max(2 * r / 1000 * scale, 3);
    g.strokeStyle = inset ? colours.rock : colours.muted; g.lineWidth = Math.max(width - inset, 0.5);
    const a = px([x0 / 1000, y0 / 1000]);
    g.beginPath(); g.moveTo(...a);
    if (x0 === x1 && y0 === y1) g.lineTo(a[0] + 0.01, a[1]); else g.lineTo(...px([x1 / 1000, y1 / 1000]));
    g.stroke();
  }
  g.fillStyle = colours.beam;
  ends.forEach((end, k) => {
    if (around.range_mm[s.row][k] >= around.reach_mm) return;
    g.beginPath(); g.arc(end[0], end[1], 2, 0, 2 * Math.PI); g.fill();
  });
  g.strokeStyle = colours.reached; g.globalAlpha = 0.7; g.lineWidth = 1.5; g.lineCap = "butt"; g.setLineDash([6, 6]);
  g.beginPath(); around.route_mm.forEach(p => g.lineTo(...px(metres(p)))); g.stroke();
  g.setLineDash([]); g.globalAlpha = 1;
  const aim = px(metres(around.aim_mm[s.row]));
  g.strokeStyle = colours.goal; g.beginPath(); g.arc(aim[0], aim[1], 4, 0, 2 * Math.PI); g.stroke();
}

// Arrows of the contact forces, from the middle of each link.
function drawForces(g, policy, s, body, px) {
  g.strokeStyle = g.fillStyle = colours.force; g.lineWidth = 2;
  policy.around.arrow_mm[s.row].forEach((arrow, k) => {
    const from = [(body[k][0] + body[k + 1][0]) / 2, (body[k][1] + body[k + 1][1]) / 2];
    const a = px(from), b = px([from[0] + arrow[0] / 1000, from[1] + arrow[1] / 1000]);
    const d = Math.hypot(b[0] - a[0], b[1] - a[1]);
    if (d < 3) return;
    const u = [(b[0] - a[0]) / d, (b[1] - a[1]) / d], h = Math.min(7, d), foot = [b[0] - h * u[0], b[1] - h * u[1]];
    g.beginPath(); g.moveTo(...a); g.lineTo(...foot); g.stroke();
    g.beginPath(); g.moveTo(...b); g.lineTo(foot[0] - h / 2 * u[1], foot[1] + h / 2 * u[0]);
    g.lineTo(foot[0] + h / 2 * u[1], foot[1] - h / 2 * u[0]); g.fill();
  });
}

function drawTargets(g, policy, s, scale, px) {
  const at = policy.targets_mm.map(t => px(metres(t)));
  g.strokeStyle = colours.line; g.lineWidth = 1; g.setLineDash([6, 6]);
  g.beginPath(); at.forEach(p => g.lineTo(...p)); g.stroke(); g.setLineDash([]);
  at.forEach((p, k) => {
    const colour = k < s.target ? colours.reached : k === s.target ? colours.goal : colours.muted;
    g.beginPath(); g.arc(p[0], p[1], Math.max(policy.radius_mm / 1000 * scale, 4), 0, 2 * Math.PI);
    g.globalAlpha = k < s.target ? 0.5 : k === s.target ? 0.35 : 0.1; g.fillStyle = colour; g.fill();
    g.globalAlpha = 1; g.strokeStyle = colour; g.lineWidth = 1.5; g.stroke();
  });
}

function drawBody(g, policy, s, at, scale) {
  const mean = policy.half_mm.reduce((a, b) => a + b, 0) / policy.half_mm.length / 1000;
  const width = Math.max(0.84 * mean * scale, 3), n = at.length - 1;
  for (const outline of [true, false]) for (let k = 0; k < n; k++) {
    g.strokeStyle = outline ? colours.ink : k === n - 1 ? policy.colour : colours.body;
    g.lineWidth = (k === n - 1 ? 1.15 : 1) * width + (outline ? 1.5 : -1.5);
    g.beginPath(); g.moveTo(...at[k]); g.lineTo(...at[k + 1]); g.stroke();
  }
  const out = beyond(policy, s);
  for (let k = 1; k < n; k++) {
    const kind = s.kinds[k - 1], over = out[k - 1];
    g.beginPath(); g.arc(at[k][0], at[k][1], (kind ? 0.62 : over ? 0.45 : 0.24) * width, 0, 2 * Math.PI);
    g.fillStyle = kind ? data.faults[kind].colour : over ? colours.beyond : "#dce3e8"; g.fill();
    if (kind) { g.strokeStyle = over ? colours.beyond : colours.ink; g.lineWidth = over ? 3 : 1.5; g.stroke(); }
  }
  const [a, b] = [at[n - 1], at[n]], d = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
  const u = [(b[0] - a[0]) / d, (b[1] - a[1]) / d];
  g.fillStyle = "#ffffff";
  for (const side of [-1, 1]) {
    g.beginPath();
    g.arc(b[0] - side * u[1] * 0.28 * width, b[1] + side * u[0] * 0.28 * width, 0.14 * width, 0, 2 * Math.PI);
    g.fill();
  }
}

function drawArrow(g, policy, s, w, h, px) {
  const goals = policy.targets_mm, around = policy.around;
  const goal = s.target < goals.length ? goals[s.target] : !goals.length && around ? around.aim_mm[s.row] : null;
  if (!goal) return;
  const at = px(metres(goal));
  if (at[0] > 0 && at[0] < w && at[1] > 0 && at[1] < h) return;
  const d = [at[0] - w / 2, at[1] - h / 2], n = Math.hypot(...d), u = [d[0] / n, d[1] / n];
  const reach = Math.min((w / 2 - 12) / Math.max(Math.abs(u[0]), 1e-9), (h / 2 - 12) / Math.max(Math.abs(u[1]), 1e-9));
  const tip = [w / 2 + reach * u[0], h / 2 + reach * u[1]];
  g.fillStyle = colours.goal;
  g.beginPath(); g.moveTo(...tip);
  g.lineTo(tip[0] - 12 * u[0] - 7 * u[1], tip[1] - 12 * u[1] + 7 * u[0]);
  g.lineTo(tip[0] - 12 * u[0] + 7 * u[1], tip[1] - 12 * u[1] - 7 * u[0]);
  g.fill();
}

function drawScale(g, w, h, scale, view) {
  const length = [10, 5, 2, 1, 0.5, 0.25, 0.1, 0.05, 0.01].find(m => m <= view / 3) || 0.01;
  const right = w - 14, bottom = h - 14, left = right - length * scale;
  g.strokeStyle = colours.ink; g.lineWidth = 2;
  g.beginPath(); g.moveTo(left, bottom - 4); g.lineTo(left, bottom); g.lineTo(right, bottom);
  g.lineTo(right, bottom - 4); g.stroke();
  g.fillStyle = colours.ink; g.font = "12px system-ui, sans-serif"; g.textAlign = "center"; g.textBaseline = "bottom";
  g.fillText(length + " m", (left + right) / 2, bottom - 5);
}

const chartBox = (w, h) => ({ left: 46, right: w - 12, top: 10, bottom: h - 34 });

function drawChart() {
  const [g, w, h] = prepare(byId("chart")), box = chartBox(w, h), end = duration();
  const values = scene.policies.flatMap(p => p.progress_mm);
  const high = Math.max(0.1, Math.max(...values) / 1000 * 1.05), low = Math.min(0, Math.min(...values) / 1000);
  const x = t => box.left + (box.right - box.left) * t / end;
  const y = v => box.bottom - (box.bottom - box.top) * (v - low) / (high - low);
  g.font = "12px system-ui, sans-serif"; g.fillStyle = colours.muted; g.strokeStyle = colours.grid; g.lineWidth = 1;
  g.textAlign = "right"; g.textBaseline = "middle";
  const step = [0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50].find(m => (high - low) / m <= 5) || 100;
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
    g.beginPath(); g.moveTo(box.left, y(v)); g.lineTo(box.right, y(v)); g.stroke();
    g.fillText(+v.toFixed(2), box.left - 6, y(v));
  }
  g.textAlign = "center"; g.textBaseline = "top";
  const tick = [1, 2, 5, 10, 20, 50, 100, 200, 500].find(s => end / 1000 / s <= 10) || 1000;
  for (let t = 0; t <= end / 1000 + 1e-9; t += tick) g.fillText(t, x(t * 1000), box.bottom + 4);
  g.fillText("time [s]", (box.left + box.right) / 2, box.bottom + 18);
  g.save(); g.translate(10, (box.top + box.bottom) / 2); g.rotate(-Math.PI / 2);
  g.fillText("progress [m]", 0, -6); g.restore();
  g.lineWidth = 2.5; g.lineJoin = "round";
  for (const p of scene.policies) {
    g.strokeStyle = p.colour; g.beginPath();
    p.time_ms.forEach((t, k) => g.lineTo(x(t), y(p.progress_mm[k] / 1000)));
    g.stroke();
  }
  g.strokeStyle = colours.ink; g.lineWidth = 1;
  g.beginPath(); g.moveTo(x(now), box.top); g.lineTo(x(now), box.bottom); g.stroke();
  for (const p of scene.policies) {
    g.fillStyle = p.colour; g.beginPath();
    g.arc(x(Math.min(now, p.time_ms[p.time_ms.length - 1])), y(sampleAt(p, now).progress), 4.5, 0, 2 * Math.PI);
    g.fill();
  }
}

const duration = () => Math.max(1, ...scene.policies.map(p => p.time_ms[p.time_ms.length - 1]));

function draw(ease) {
  panels.forEach(p => drawPanel(p, ease));
  drawChart();
  byId("time").value = 1000 * now / duration();
  byId("clock").textContent = `${(now / 1000).toFixed(1)} / ${(duration() / 1000).toFixed(1)} s`;
}

function frame(stamp) {
  if (!playing) return;
  now = Math.min(duration(), now + (last === null ? 0 : stamp - last) * Number(byId("speed").value));
  last = stamp;
  draw(true);
  if (now >= duration()) setPlaying(false); else requestAnimationFrame(frame);
}

function setPlaying(on) {
  if (on && now >= duration()) now = 0;
  playing = on; last = null;
  byId("play").textContent = on ? "Pause" : "Play";
  if (on) requestAnimationFrame(frame);
}

function seek(t) { now = Math.min(Math.max(t, 0), duration()); draw(false); }

function choose(index) {
  scene = data.scenes[index];
  [...byId("scenes").children].forEach((b, k) => b.setAttribute("aria-pressed", k === index));
  byId("panels").replaceChildren();
  panels.forEach(forgetSpace);
  panels = scene.policies.map(policy => {
    const panel = document.createElement("section"), header = document.createElement("header");
    const name = document.createElement("b"), stats = document.createElement("span");
    const canvas = document.createElement("canvas");
    panel.className = "panel"; panel.style.setProperty("--policy", policy.colour);
    name.textContent = policy.name; stats.style.whiteSpace = "pre";
    canvas.setAttribute("role", "img"); canvas.setAttribute("aria-label", "Robot driven by " + policy.name);
    header.append(name, stats); panel.append(header, canvas); byId("panels").append(panel);
    turnByHand(canvas);
    return { policy, canvas, stats, view: null };
  });
  if (scene.policies.some(p => p.body) && !inSpace && !refused) setSpace(true);
  seek(now);
}

// Switch to the view in space, or back; where the browser cannot draw it, say so and stay.
async function setSpace(on) {
  const drawn = on && await beginSpace();
  inSpace = drawn;
  byId("space").setAttribute("aria-pressed", drawn);
  byId("hint").textContent = !on ? "" : drawn
    ? "3-D: drag to turn, wheel or pinch to zoom, Shift and drag to move, double-click to start over."
    : `3-D is not available (${refused}): shown from above.`;
  panels.forEach(p => p.canvas.classList.toggle("space", drawn));
  draw(false);
}

function legend() {
  const kinds = new Set(data.scenes.flatMap(s => s.policies.flatMap(p => p.faults.flatMap(f => f[1]))).filter(k => k));
  const add = (colour, text) => {
    const item = document.createElement("span"), dot = document.createElement("i");
    dot.style.background = colour; item.append(dot, text); byId("legend").append(item);
  };
  kinds.forEach(k => add(data.faults[k].colour, data.faults[k].name + " joint"));
  const seen = data.scenes.flatMap(s => s.policies.flatMap(p => p.around ? [p.around] : []));
  if (seen.some(a => a.bars_mm.length + a.polygons_mm.length)) add(colours.rock, "obstacle");
  if (seen.some(a => a.beam_mrad.length)) { add(colours.beam, "beam of the scanner"); add(colours.force, "contact force"); }
  if (data.scenes.some(s => s.policies.some(p => p.time_ms.some(t => beyond(p, sampleAt(p, t)).includes(true)))))
    add(colours.beyond, "joint beyond its limits");
  add(colours.goal, "current target, and line of sight in 3-D"); add(colours.reached, "target reached");
}

readColours();
data.scenes.forEach((s, k) => {
  const button = document.createElement("button");
  button.textContent = s.label; button.onclick = () => { now = 0; choose(k); };
  byId("scenes").append(button);
});
byId("play").onclick = () => setPlaying(!playing);
byId("time").oninput = e => { setPlaying(false); seek(e.target.value / 1000 * duration()); };
byId("camera").onclick = () => { whole = !whole; byId("camera").setAttribute("aria-pressed", whole); draw(false); };
byId("space").onclick = () => setSpace(!inSpace);
byId("chart").onpointerdown = byId("chart").onpointermove = e => {
  if (e.type === "pointermove" && !e.buttons) return;
  const box = chartBox(e.target.clientWidth, e.target.clientHeight);
  setPlaying(false); seek((e.offsetX - box.left) / (box.right - box.left) * duration());
};
document.addEventListener("keydown", e => {
  if (["SELECT", "BUTTON"].includes(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === " ") { e.preventDefault(); setPlaying(!playing); }
  if (e.target.tagName === "INPUT") return;
  if (e.key === "ArrowRight") seek(now + 1000);
  if (e.key === "ArrowLeft") seek(now - 1000);
});
window.addEventListener("resize", () => draw(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours(); panels.forEach(forgetSpace); draw(false);
});
legend();
choose(0);
setPlaying(!matchMedia("(prefers-reduced-motion: reduce)").matches);
