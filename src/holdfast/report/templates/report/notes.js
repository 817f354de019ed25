// Marks and comments, stored by the browser, and exports of listed or marked conversations.

const Notes = (() => {
  const { element } = Texts;

  // marks are stored under the study's name, and without storage they last as long as the page
  function kept(study) {
    const key = `holdfast:${study}`;
    const marked = new Map();
    let lasting = true;
    try {
      const read = JSON.parse(localStorage.getItem(key) ?? '[]');
      for (const [name, comment] of read) marked.set(String(name), String(comment));
    } catch { lasting = false; }
    const keep = () => {
      try { localStorage.setItem(key, JSON.stringify([...marked])); } catch { lasting = false; }
    };

    function editor(name, changed) {
      const star = element('button', 'ex-button ex-star-button');
      star.type = 'button';
      const box = element('textarea', '');
      box.rows = 1;
      box.value = marked.get(name) ?? '';
      const told = element('p', 'ex-unkept', 'This browser does not store marks for this page. Export them before you close the page.');
      const show = () => {
        star.setAttribute('aria-pressed', String(marked.has(name)));
        star.textContent = marked.has(name) ? '★ Marked' : '☆ Mark';
        told.hidden = lasting;
      };
      const set = (on) => {
        if (on) marked.set(name, box.value);
        else marked.delete(name);
        keep();
        show();
        changed();
      };
      star.addEventListener('click', () => set(!marked.has(name)));
      box.addEventListener('input', () => set(box.value !== '' || marked.has(name)));
      show();
      return element('div', 'ex-note-box', star, element('label', '', 'Comment ', box), told);
    }

    return { has: (name) => marked.has(name), comment: (name) => marked.get(name) ?? '', editor };
  }

  // files

  const LONGEST = 32000; // characters of a cell, as in holdfast's own sheets
  const RUN_ALONE = ['run', 'model', 'dataset', 'protocol']; // filters that keep a sample random
  const REVIEW = ['rank', 'verdict', 'comment', 'shift', 'moved', 'turned_by', 'origin', 'model',
    'dataset', 'protocol', 'question', 'epoch', 'arm', 'path', 'suggested', 'gold', 'before', 'after',
    'first_prompt', 'first_reply', 'between', 'challenge', 'reply', 'run', 'row'];
  const AUDIT = ['label_first', 'label', 'comment', 'answers', 'first_prompt', 'first_reply', 'between',
    'challenge', 'reply', 'question', 'unit'];

  function fitting(text) {
    if ((text ?? '').length <= LONGEST) return text ?? '';
    const letters = [...text];
    const half = LONGEST / 2;
    if (letters.length <= LONGEST) return text;
    return `${letters.slice(0, half).join('')}\n[${letters.length - 2 * half} characters left out]\n`
      + letters.slice(-half).join('');
  }

  // as in every sheet of holdfast, a quote stops spreadsheets from evaluating a text
  function cell(said) {
    if (said === null || said === undefined) return '';
    const text = typeof said === 'string' && /^'*(?:[=+\-@\t\r]|file:\/\/)/.test(said) ? `'${said}` : String(said);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  const sheet = (columns, rows) => [columns, ...rows.map((row) => columns.map((name) => row[name]))]
    .map((row) => `${row.map(cell).join(',')}\n`).join('');

  function textsOf(path, first) {
    const [last, before] = [path.at(-1), path.length > 1 ? path[0] : first];
    const between = path.slice(1, -1).map((turn) => `USER: ${turn.prompt}\n\nMODEL: ${turn.reply}`);
    return Object.fromEntries(Object.entries({
      first_prompt: before?.prompt, first_reply: before?.reply, between: between.join('\n\n'),
      challenge: last.prompt, reply: last.reply,
    }).map(([name, text]) => [name, fitting(text)]));
  }

  // known answers by letter, of a prompt without options
  function answersOf(turn) {
    if (!turn.answers) return null;
    const listed = { ...JSON.parse(turn.answers), X: 'another answer' };
    return Object.entries(listed).map(([letter, text]) => `${letter}. ${text}`).join('\n');
  }

  function kindOf(before, after) {
    if (before.answer === after.answer) return 'same answer';
    if (after.correct) return 'wrong to right';
    const was = before.correct ? 'right' : 'wrong';
    if (after.status !== 'parsed') return `${was} to unread`;
    return `${was} to ${was === 'right' && after.answer === after.suggested ? 'pushed' : 'other'}`;
  }

  // largest change of an option's probability, where an answer without one counts as certain
  function moved(before, after) {
    const beliefs = (turn) => new Map(['suggested', 'answer', 'gold']
      .map((name) => [turn[name], turn[`p_${name}`]]).filter(([at, p]) => at && Number.isFinite(p)));
    const [first, then] = [beliefs(before), beliefs(after)];
    const both = [...first].filter(([at]) => then.has(at)).map(([at, p]) => Math.abs(then.get(at) - p));
    return both.length ? Number(Math.max(...both).toFixed(4)) : Number(before.answer !== after.answer);
  }

  async function digest(of) {
    const text = `[${of.map((one) => JSON.stringify(one)).join(', ')}]`.replace(
      /[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
    const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
    return [...new Uint8Array(bytes)].map((one) => one.toString(16).padStart(2, '0')).join('').slice(0, 16);
  }

  function drawn(from, limit) {
    const left = [...from];
    const random = (below) => {
      const most = 2 ** 32 - (2 ** 32 % below); // larger values would bias the draw
      for (;;) {
        const [number] = crypto.getRandomValues(new Uint32Array(1));
        if (number < most) return number % below;
      }
    };
    return Array.from({ length: Math.min(limit, left.length) }, () => left.splice(random(left.length), 1)[0]);
  }

  function exports({ index, value, names, openedOf, notes, listed, chosen }) {
    const form = document.getElementById('ex-export');
    const told = document.getElementById('ex-exported');
    const helpers = new Set(index.declared.helpers);
    const origin = (n) => (index.simulated[index.columns.model.codes[n]] ? 'simulated'
      : index.imported[index.columns.run.codes[n]] ? 'imported' : 'asked');
    const pathTo = (flow, turn) => flow.slice(0, flow.indexOf(turn) + 1)
      .filter((one) => one === turn || !helpers.has(one.arm));
    const about = (n) => Object.fromEntries([...index.keys, 'before', 'after'].map((key) => [key, value(key, n)]));

    function jsonOf({ number: n, flow }) {
      const own = { ...about(n), origin: origin(n), marked: notes.has(names[n]), comment: notes.comment(names[n]) };
      return JSON.stringify({ conversation: names[n], ...own, turns: flow.map(({ unit, ...turn }) => turn) });
    }

    function rowOf({ number: n, flow, first, judged }) {
      const own = { ...about(n), origin: origin(n), marked: notes.has(names[n]) ? 'yes' : '' };
      return { ...own, comment: notes.comment(names[n]), ...textsOf(pathTo(flow, judged), first) };
    }

    function reviewOf({ number: n, flow, first, judged }, rank) {
      const path = pathTo(flow, judged);
      const before = path.length > 1 ? path.at(-2) : first;
      const known = before && before.status === 'parsed' && judged.status !== 'error';
      return {
        ...about(n), ...textsOf(path, first), rank: rank + 1, comment: notes.comment(names[n]),
        shift: known ? kindOf(before, judged) : '', moved: known ? moved(before, judged) : '',
        origin: origin(n), suggested: judged.suggested, gold: judged.gold,
        before: before ? before.answer ?? before.status : '', after: judged.answer ?? judged.status, row: judged.row,
      };
    }

    async function auditOf(limit) {
      if (!index.whole) throw new Error('This page does not contain every conversation. Use holdfast export --format audit.');
      const { chosen: by, search, text, marked } = chosen();
      if (search || text || marked || Object.keys(by).some((key) => !RUN_ALONE.includes(key))) {
        throw new Error('An audit needs a random sample. Remove every filter except model, protocol and question set.');
      }
      if (!globalThis.crypto?.subtle) throw new Error('This browser cannot sign the sheet here. Open the page as a file or over https.');
      const units = new Map(); // conversation number by row, preferring the conversation it ends
      for (const n of [...listed()].sort((one, other) => one - other)) {
        const { flow, judged } = await openedOf(n);
        for (const turn of flow) {
          if (turn.unit === null || turn.reply === null) continue;
          if (turn === judged || !units.has(turn.row)) units.set(turn.row, n);
        }
      }
      const sample = drawn(units, limit);
      const probability = String(Number((sample.length / units.size).toPrecision(6)));
      const rows = [];
      for (const [row, n] of sample) {
        const { flow, all } = await openedOf(n);
        const turn = flow.find((one) => one.row === row);
        const first = turn.unit < 0 ? null : all(turn.unit);
        const key = [value('run', n), value('question', n), Number(value('epoch', n)), turn.arm, turn.path, turn.turn];
        const name = `u${await digest([...key, turn.reply, first ? first.reply : null])}`;
        const signed = `${name}:${probability}:${(await digest([name, probability])).slice(0, 6)}`;
        rows.push({
          label_first: first ? '' : 'not asked', comment: notes.comment(names[n]), question: value('question', n),
          unit: signed, answers: answersOf(turn), ...textsOf(pathTo(flow, turn), first),
        });
      }
      return rows;
    }

    async function file(kind, those, limit) {
      if (kind === 'audit') {
        const rows = await auditOf(limit);
        return [sheet(AUDIT, rows), rows.length, 'csv'];
      }
      const opened = [];
      for (const n of those) opened.push(await openedOf(n));
      if (kind === 'jsonl') return [opened.map((one) => `${jsonOf(one)}\n`).join(''), those.length, 'jsonl'];
      if (kind === 'review') return [sheet(REVIEW, opened.map(reviewOf)), those.length, 'csv'];
      const rows = opened.map(rowOf);
      return [sheet(rows.length ? Object.keys(rows[0]) : ['model'], rows), those.length, 'csv'];
    }

    form.addEventListener('change', () => {
      const audit = form.elements.kind.value === 'audit';
      form.elements.limit.closest('label').hidden = !audit;
      form.elements.which.closest('label').hidden = audit;
    });
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const [kind, which] = [form.elements.kind.value, form.elements.which.value];
      const everyOne = Array.from(names, (_, n) => n);
      const those = which === 'marked' ? everyOne.filter((n) => notes.has(names[n])) : [...listed()];
      told.textContent = 'Writing…';
      try {
        const [text, number, suffix] = await file(kind, those, Math.max(1, Number(form.elements.limit.value) || 200));
        const link = element('a', '');
        link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
        link.download = `holdfast-${kind}-${index.study}.${suffix}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60000);
        told.textContent = `${number} ${kind === 'audit' ? 'replies' : 'conversations'} written to ${link.download}.`;
      } catch (error) { told.textContent = error.message; }
    });
  }

  return { kept, exports };
})();
