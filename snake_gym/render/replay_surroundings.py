"""The part of the replay page's script that draws obstacles, the scanner's beams, the route and contact forces."""

SURROUNDINGS = r"""// Obstacles, beams, route and the place to go to: what lies below the robot.
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
"""
