"""WCAG contrast of what a browser really shows: every visible text on the ground behind it, every mark on its own."""

from __future__ import annotations

# The texts and marks that fall short: [what, ratio, colour, ground]. The ground is the first opaque one behind.
SHORTFALLS = """
(() => {
  const channel = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parse = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return {r, g, b, a}; };
  const luminance = c => 0.2126 * channel(c.r) + 0.7152 * channel(c.g) + 0.0722 * channel(c.b);
  const ratio = (one, other) => {
    const [a, b] = [luminance(one), luminance(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const ground = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.a === 1) return colour;
    }
    return {r: 255, g: 255, b: 255, a: 1};
  };
  const visible = node => node.getClientRects().length > 0 && node.checkVisibility({opacityProperty: true});
  const found = [];
  const check = (what, text, behind, least) => {
    const colour = parse(text);
    if (colour.a === 0) return;
    const reached = ratio(colour, behind);
    if (reached < least) found.push([what, Math.round(100 * reached) / 100, text, JSON.stringify(behind)]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement, said = texts.currentNode.textContent.trim();
    if (!said || !visible(node) || node.closest('title, desc, style')) continue;
    const style = getComputedStyle(node), svg = node.closest('svg');
    const large = parseFloat(style.fontSize) >= 24
      || (parseFloat(style.fontSize) >= 18.66 && parseInt(style.fontWeight) >= 700);
    const round = node.closest('.findings li') && getComputedStyle(node.closest('li'), '::before');
    check(said.slice(0, 40), svg ? style.fill : style.color, ground(svg || node), large ? 3 : 4.5);
    if (round) check('number of a finding', round.color, parse(round.backgroundColor), 4.5);
  }
  for (const mark of document.querySelectorAll('svg .mark *')) {
    if (!visible(mark) || mark.matches('text, title, g')) continue;
    const style = getComputedStyle(mark);
    if (style.fill.startsWith('url') || style.fill === 'rgba(0, 0, 0, 0)') continue;
    const painted = style.stroke !== 'none' ? style.stroke : style.fill;  // an outline tells a pale fill apart
    check(`mark ${mark.tagName}`, painted, ground(mark.closest('svg')), 3);
  }
  return found;
})()
"""
