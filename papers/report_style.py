"""Look of the report: one style sheet for screen, phone and paper, and the marks of the verdicts as inline SVG."""

from __future__ import annotations

from papers.study import Verdict

COLOURS: dict[Verdict, str] = {"reproduced": "#00795a", "partly": "#b07400", "not": "#b8330e"}
"""Dark enough for text on white; close to Okabe and Ito's green, orange and vermilion."""

_SHAPES: dict[Verdict, str] = {
    "reproduced": '<circle cx="8" cy="8" r="7" fill="currentColor"/>'
    '<path d="M4.5 8.2l2.5 2.5 4.6-5" fill="none" stroke="#fff" stroke-width="2"/>',
    "partly": '<circle cx="8" cy="8" r="6.2" fill="#fff" stroke="currentColor" stroke-width="1.6"/>'
    '<path d="M8 1.8a6.2 6.2 0 0 0 0 12.4z" fill="currentColor"/>',
    "not": '<circle cx="8" cy="8" r="6.2" fill="#fff" stroke="currentColor" stroke-width="1.6"/>'
    '<path d="M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" stroke="currentColor" stroke-width="1.8"/>',
}


def mark(verdict: Verdict) -> str:
    """The sign of a verdict: told apart by shape as well as by colour."""
    return (
        f'<svg class="mark {verdict}" viewBox="0 0 16 16" width="16" height="16" role="img" aria-label="{verdict}">'
        f"<title>{verdict}</title>{_SHAPES[verdict]}</svg>"
    )


STYLE = (
    """
:root { color-scheme: light; --ink: #22303c; --muted: #5c6873; --line: #d5dadd; --tint: #f4f6f7; --link: #00598f; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 4rem; background: #fff; color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .3rem; }
h3 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p { margin: .5rem 0; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code { font: .85em/1.45 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
pre { margin: .4rem 0; padding: .6rem .8rem; background: var(--tint); border-radius: 6px; white-space: pre-wrap; }
.muted, .note, figcaption, .source { color: var(--muted); }
.note, figcaption, .source, .small { font-size: .875rem; }
section { margin-top: 3.5rem; padding-top: 1.2rem; border-top: 3px solid var(--ink); }
.mark { vertical-align: -.2em; }
.verdict { white-space: nowrap; font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { font-size: .85rem; color: var(--muted); font-weight: 600; border-bottom: 1.5px solid var(--ink);
  vertical-align: bottom; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
.wide { overflow-x: auto; }
.matrix a { display: inline-block; line-height: 1; padding: 2px; }
.matrix .count { font-weight: 600; }
.matrix tfoot td { border-top: 1.5px solid var(--ink); font-weight: 600; }
.data { font-size: .875rem; }
.data tr:nth-child(even) td { background: var(--tint); }
.claims td { padding-top: .6rem; padding-bottom: .6rem; }
.claims td:nth-child(2) { width: 8.2rem; }
.claims .numbers { width: 13.5rem; font-size: .9rem; font-variant-numeric: tabular-nums; }
.claims .numbers div { display: grid; grid-template-columns: 4.4rem 1fr; align-items: baseline; }
.claims .numbers span { color: var(--muted); font-size: .8rem; }
.claims .numbers b { font-weight: 400; }
.which { white-space: nowrap; }
.claims tr:target td { background: #fff7df; }
.claims .index { color: var(--muted); font-size: .85rem; }
figure { margin: 1.6rem 0; }
figure img { display: block; width: 100%; height: auto; }
figcaption { margin-top: .4rem; }
figcaption b { color: var(--ink); }
.facts td:first-child { width: 14rem; color: var(--muted); }
.failed { color: """
    + COLOURS["not"]
    + """; }
"""
    + "".join(f".{verdict} {{ color: {colour}; }}\n" for verdict, colour in COLOURS.items())
    + """
@media screen and (max-width: 44rem) {
  body { padding: 1rem .9rem 3rem; }
  h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; }
  .claims thead { display: none; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: auto; }
  .claims tr { border-bottom: 1px solid var(--line); padding: .7rem 0; }
  .claims td { border: 0; padding: .1rem 0 !important; }
  .claims td.index { float: right; }
  .claims td:nth-child(2), .claims .numbers { width: auto; }
  .which { white-space: normal; }
  .facts td { display: block; border: 0; padding: .1rem 0; } .facts td:first-child { width: auto; }
}
@page { size: A4; margin: 16mm 14mm; }
@media print {
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; font-size: 1rem; line-height: 1.4; }
  section { break-before: page; margin-top: 0; border-top: 0; padding-top: 0; }
  tr, figure, pre { break-inside: avoid; }
  h3 { break-after: avoid; }
  figure img { max-height: 235mm; width: auto; max-width: 100%; }
  a { color: inherit; }
  .wide { overflow: visible; }
  .facts { break-inside: avoid; }
  .data { font-size: 8pt; } .data th { font-size: 8pt; }
  .data td, .data th { padding: .15rem .3rem; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
)
