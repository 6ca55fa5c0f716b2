// Formulas as pymdownx.arithmatex leaves them: \( .. \) in the text, \[ .. \] in a line of their own.
for (const formula of document.querySelectorAll(".arithmatex")) {
  const source = formula.textContent.trim();
  katex.render(source.slice(2, -2), formula, { displayMode: source.startsWith("\\["), throwOnError: false });
}
