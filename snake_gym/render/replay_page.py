"""The page that ``replay`` fills in: markup and style, with no request to anywhere."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
<style>
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #22303c; --muted: #66747f; --grid: #e3e7ea; --faint: #f1f3f4;
  --line: #d5dadd; --body: #5f7486; --reached: #009e73; --goal: #e69f00;
  --rock: #c9bfb2; --beam: #56b4e9; --force: #7030c0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #161b20; --card: #1d242a; --ink: #e4e9ed; --muted: #9aa7b1; --grid: #303a43; --faint: #252d34;
    --line: #3a454f; --body: #93a7b8; --reached: #2fbf95; --goal: #f0b429;
    --rock: #6e655a; --beam: #56b4e9; --force: #b48cff;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 20px; }
h1 { font-size: 22px; margin: 0 0 2px; }
p { margin: 0 0 14px; color: var(--muted); }
.scenes { display: flex; flex-wrap: wrap; gap: 6px; margin-bottom: 12px; }
button, select {
  font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 6px 12px; cursor: pointer;
}
button[aria-pressed="true"] { background: var(--ink); color: var(--paper); border-color: var(--ink); }
button:focus-visible, select:focus-visible, input:focus-visible { outline: 2px solid #0072b2; outline-offset: 2px; }
.panels { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
.panel { background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.panel header {
  display: flex; flex-wrap: wrap; gap: 2px 16px; align-items: baseline; padding: 8px 12px;
  font-variant-numeric: tabular-nums; border-top: 4px solid var(--policy);
}
.panel header b { font-size: 16px; margin-right: auto; overflow-wrap: anywhere; }
canvas { display: block; width: 100%; }
.panel canvas { aspect-ratio: 4 / 3; }
#chart { height: 150px; margin-top: 14px; cursor: pointer; }
.controls { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; margin-top: 10px; }
.controls input { flex: 1 1 240px; accent-color: #0072b2; }
#play { min-width: 84px; }
#clock { font-variant-numeric: tabular-nums; min-width: 108px; text-align: right; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin-top: 12px; color: var(--muted); font-size: 13px; }
.legend i {
  display: inline-block; width: 11px; height: 11px; border-radius: 50%; border: 1.5px solid var(--ink);
  margin-right: 6px;
}
</style>
</head>
<body>
<main>
<h1>{{title}}</h1>
<p>{{note}}</p>
<noscript><p>This page plays its recordings with JavaScript, which is switched off.</p></noscript>
<div class="scenes" id="scenes" role="group" aria-label="Scenario"></div>
<div class="panels" id="panels"></div>
<canvas id="chart" role="img" aria-label="Progress over time of every policy"></canvas>
<div class="controls">
  <button id="play">Play</button>
  <input id="time" type="range" min="0" max="1000" value="0" step="any" aria-label="Time">
  <span id="clock"></span>
  <select id="speed" aria-label="Speed">
    <option value="1">1x</option><option value="2">2x</option><option value="4" selected>4x</option>
    <option value="8">8x</option><option value="16">16x</option>
  </select>
  <button id="camera" aria-pressed="false">Whole course</button>
</div>
<div class="legend" id="legend"></div>
</main>
<script type="application/json" id="data">{{data}}</script>
<script>
{{player}}</script>
</body>
</html>
"""
