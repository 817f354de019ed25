'use strict';

// Texts of a study as page elements: prompts with marked options and folded instructions, replies
// with Markdown. Texts are untrusted, so they reach the page only as text nodes, never as markup
// or addresses.

const Texts = (() => {
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
  const OPTION = /^[ \t]*[([]?([A-Z])[.):\]][ \t]+\S/;
  const LEAST_FOLDED = 120; // minimum repeated characters of a question to fold
  const TAGS = { right: '✓ right', suggested: '▲ suggested' };

  function element(tag, kind, ...children) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(...children.filter((child) => child !== null && child !== ''));
    return made;
  }

  const folded = (words, ...parts) => element('details', '', element('summary', '', words), ...parts);

  // controls, direction marks, false line ends, invisible tags and lone surrogates are spelled out,
  // because they could hide or reorder a text
  const UNSEEN = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e'
    + '\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}'
    + '\\p{Surrogate}]', 'gu');

  function spelled(text) {
    return text.replace(/\r\n/g, '\n').replace(UNSEEN, (one) => {
      const code = one.codePointAt(0).toString(16);
      return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
    });
  }

  // prompts

  // letter of each line in a list of options that begins with A, or ''
  function optionsOf(lines) {
    const letters = lines.map((line) => OPTION.exec(line)?.[1] ?? '');
    return letters.map((letter, at) => {
      const first = at - ALPHABET.indexOf(letter);
      if (!letter || first < 0) return '';
      const listed = (n) => letters[first + n] === ALPHABET[n];
      const before = Array.from({ length: at - first }, (_, n) => n).every(listed);
      return before && letters[first + 1] === 'B' ? letter : '';
    });
  }

  const trimmed = (line) => line.replace(/^[ \t\r]+|[ \t\r]+$/g, '');
  const pieces = (line) => line.split(/(?<=[.?!]["”)]?\s)/);

  // sentences and lines that a later prompt may repeat
  function segments(text) {
    return new Set(text.split('\n').flatMap(pieces).map((piece) => piece.trim()).filter(Boolean));
  }

  function option(line, kinds) {
    if (!kinds.length) return line;
    const tags = kinds.map((kind) => element('span', `ex-tag ex-tag-${kind}`, TAGS[kind]));
    return element('span', `ex-option ex-option-${kinds[0]}`, line, ...tags.flatMap((tag) => [' ', tag]));
  }

  // common: lines of nearly every question. before: segments already shown.
  // kinds: returns the marks of an option by its letter.
  function prompted(text, { common, before, kinds }) {
    const lines = spelled(text).split('\n');
    const letters = optionsOf(lines);
    const plain = (at) => !letters[at] && (!trimmed(lines[at]) || common.has(trimmed(lines[at])));
    let [from, to] = [0, lines.length];
    while (from < to && plain(from)) from += 1;
    while (to > from && plain(to - 1)) to -= 1;
    const said = (part) => part.some((line) => trimmed(line));
    if (from === to || !said(lines.slice(0, from))) from = 0;
    if (from === to || !said(lines.slice(to))) to = lines.length;
    const parts = [];
    const own = (part) => element('p', '', trimmed(part.join('\n')).replace(/^\n+|\n+$/g, ''));
    if (from > 0) parts.push(folded('Instructions', own(lines.slice(0, from))));
    parts.push(...body(lines.slice(from, to), letters.slice(from, to), before, kinds,
      from > 0 || to < lines.length));
    if (to < lines.length) parts.push(folded('How to answer', own(lines.slice(to))));
    return parts;
  }

  function body(lines, letters, before, kinds, cut) {
    const runs = []; // alternating runs of repeated and new pieces
    lines.forEach((line, at) => {
      const own = letters[at] ? [line] : pieces(line);
      own.forEach((piece, n) => {
        const blank = !piece.trim();
        const known = blank ? runs.at(-1)?.known ?? false : before.has(piece.trim());
        if (runs.at(-1)?.known !== known) runs.push({ known, size: 0, parts: [] });
        const run = runs.at(-1);
        run.size += piece.length;
        run.parts.push(letters[at] ? option(piece, kinds(letters[at])) : piece);
        if (n === own.length - 1 && at < lines.length - 1) run.parts.push('\n');
      });
    });
    const repeats = runs.some((run) => run.known && run.size >= LEAST_FOLDED);
    if (!repeats) {
      const parts = runs.flatMap((run) => run.parts);
      return cut ? [element('p', '', ...parts)] : parts;
    }
    return runs.map((run) => (run.known
      ? folded('Same as in the question above', element('p', '', ...run.parts))
      : element('p', 'ex-new', ...run.parts)));
  }

  // replies: bold, italics, code, lists and headings, while links and images stay plain text

  const MARKERS = { '`': 'code', '**': 'b', '*': 'i' };

  function inline(text) {
    const nodes = [];
    const none = new Set(); // markers without a later match
    let [plain, at] = [0, 0];
    while (at < text.length) {
      const marker = text[at] === '`' ? '`' : text.startsWith('**', at) ? '**' : text[at] === '*' ? '*' : '';
      if (!marker || none.has(marker)) {
        at += marker.length || 1;
        continue;
      }
      let end = text.indexOf(marker, at + marker.length);
      if (end < 0) none.add(marker);
      if (marker === '**' && text[end + 2] === '*') end += 1;
      const inner = text.slice(at + marker.length, end);
      const within = /[\p{L}\p{N}]/u.test(text[at - 1] ?? '') && /[\p{L}\p{N}]/u.test(text[end + marker.length] ?? '');
      const fits = end >= 0 && inner && !/^\s|\s$|\n/.test(inner) && !(marker === '*' && within);
      if (!fits) {
        at += marker.length;
        continue;
      }
      nodes.push(text.slice(plain, at), element(MARKERS[marker], '', ...(marker === '`' ? [inner] : inline(inner))));
      at = end + marker.length;
      plain = at;
    }
    return [...nodes, text.slice(plain)].filter((node) => node !== '');
  }

  const FENCE = /^ {0,3}(```|~~~)/;
  const HEADING = /^ {0,3}#{1,6}[ \t]+(\S.*?)[ \t#]*$/;
  const ITEM = /^([ \t]*)(?:[-*+•]|(\d{1,3})[.)])[ \t]+(\S.*)$/;

  const NAMED = '(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)';
  const CLOSE = `<\\s?/\\s?${NAMED}\\s?>`;
  const OPEN = new RegExp(`<\\s?${NAMED}\\b[^<>]*>`, 'i');
  const THOUGHT = new RegExp(`${OPEN.source}[^]*?(?:${CLOSE}|$)`, 'gi');
  const LATE = new RegExp(CLOSE, 'i');

  // fold reasoning between its tags, or all text before a lone closing tag
  function replied(text) {
    const shown = spelled(text);
    const parts = [];
    const thought = (said) => parts.push(folded('Reasoning', element('p', '', trimmed(said))));
    const late = LATE.exec(shown);
    let at = late && !OPEN.test(shown.slice(0, late.index)) ? late.index + late[0].length : 0;
    if (at) thought(shown.slice(0, at));
    const rest = shown.slice(at);
    at = 0;
    for (const found of rest.matchAll(THOUGHT)) {
      parts.push(...formatted(rest.slice(at, found.index)));
      thought(found[0]);
      at = found.index + found[0].length;
    }
    return [...parts, ...formatted(rest.slice(at))];
  }

  function formatted(text) {
    const lines = text.split('\n');
    const parts = [];
    let said = [];
    const close = () => {
      if (said.length) parts.push(element('p', '', ...inline(said.join('\n'))));
      said = [];
    };
    for (let at = 0; at < lines.length; at += 1) {
      const [fence, heading, item] = [FENCE, HEADING, ITEM].map((kind) => kind.exec(lines[at]));
      const end = fence ? lines.findIndex((line, n) => n > at && trimmed(line) === fence[1]) : -1;
      if (end > 0) {
        close();
        parts.push(element('pre', '', element('code', '', lines.slice(at + 1, end).join('\n'))));
        at = end;
      } else if (heading) {
        close();
        parts.push(element('p', 'ex-heading', ...inline(heading[1])));
      } else if (item) {
        close();
        const tag = item[2] ? 'ol' : 'ul';
        const made = element('li', '', ...inline(item[3]));
        if (item[2]) made.value = Number(item[2]);
        made.style.marginLeft = `${Math.min(6, item[1].replace(/\t/g, '    ').length / 2)}rem`;
        if (parts.at(-1)?.localName !== tag) parts.push(element(tag, ''));
        parts.at(-1).append(made);
      } else if (!trimmed(lines[at])) {
        if (lines.length > 1) close();
      } else said.push(lines[at]);
    }
    close();
    return parts.flatMap((part, at) => (at ? ['\n\n', part] : [part]));
  }

  // mark search terms inside text nodes, and open folded parts that contain one
  function marked(root, terms) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    const plain = terms.map((term) => term.replace(/[$()*+./?[\\\]^{|}]/g, '\\$&'));
    const any = new RegExp(plain.join('|'), 'giu');
    for (const node of nodes) {
      let [rest, at] = [node, 0];
      for (const found of node.data.matchAll(any)) {
        const hit = rest.splitText(found.index - at);
        rest = hit.splitText(found[0].length);
        at = found.index + found[0].length;
        const mark = element('mark', '');
        hit.replaceWith(mark);
        mark.append(hit);
      }
    }
    for (const part of root.querySelectorAll('details:has(mark)')) part.open = true;
  }

  return { element, folded, spelled, segments, prompted, replied, marked, optionsOf };
})();
