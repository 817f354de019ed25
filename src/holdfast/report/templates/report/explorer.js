'use strict';

// The explorer: conversations of the report, filtered, listed and read turn by turn.
// Every text of a study is hostile: it reaches the page as text alone, never as markup or address.

(() => {
  const byId = (id) => document.getElementById(id);
  const NAMED_BY = ['run', 'model', 'dataset', 'protocol', 'epoch', 'arm', 'path', 'question'];
  const [START, NOTHING] = ['#conversations', { chosen: {}, search: '', open: -1 }];
  // characters, rows, chunks; and the height of a row in rem, as in the style sheet
  const [AT_FIRST, ROWS_AROUND, KEPT_CHUNKS, ROW] = [20000, 6, 6, 3.5];
  // a shape for each, so that no colour is needed to tell them apart
  const MARKS = {
    'kept': '●', 'given-up-pushed': '▲', 'given-up-other': '△', 'given-up-unread': '▽',
    'mended': '◆', 'stayed-wrong': '■', 'unread-first': '□', 'failed': '×', 'single': '–',
  };
  const STANCES = { verify: ', and verifies it', defer: ', and defers to it' };
  const count = new Intl.NumberFormat('en-US');

  let keys, columns, starts, flips, flexed, sets, setWords, short, total, choices, names, numbers;
  let declared; // what protocols declare of their turns: names of protocols, and arms
  let [chosen, search, open] = [{}, '', -1]; // what the address says
  let [matches, active, rowHeight] = [[], 0, 56];
  let [own, asked] = [null, 0]; // the hash that this script has set, which is no arrival; readings
  const [drawn, chunks] = [new Map(), new Map()];

  function element(tag, kind, ...children) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(...children.filter((child) => child !== null && child !== ''));
    return made;
  }

  function button(words, act) {
    const made = element('button', 'ex-button', words);
    made.type = 'button';
    made.addEventListener('click', act);
    return made;
  }

  // what a study calls things must find nothing that every object has
  const from = (words, key, other) => (Object.hasOwn(words, key) ? words[key] : other);
  const focus = (id) => byId(id).focus({ preventScroll: true });
  const tell = (id) => { byId(id).hidden = false; };
  const folded = (words, ...parts) => element('details', '', element('summary', '', words), ...parts);
  const value = (key, number) => columns[key].values[columns[key].codes[number]];

  function mark(flip) {
    const made = element('span', `ex-mark ex-is-${flip}`, from(MARKS, flip, ''));
    made.setAttribute('aria-hidden', 'true');
    return made;
  }

  function became(number) {
    const [flip, arm] = [value('flip', number), value('arm', number)];
    const words = (declared.offered.includes(arm) && flexed[flip]) || flips[flip];
    return `${capital(words)}.`;
  }

  // texts

  // controls, marks and overrides of direction, line ends that are none, invisible tags, halves
  // of a character: what could hide or reorder a text is spelled out
  const UNSEEN = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e'
    + '\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}'
    + '\\p{Surrogate}]', 'gu');

  function spelled(text) {
    return text.replace(/\r\n/g, '\n').replace(UNSEEN, (one) => {
      const code = one.codePointAt(0).toString(16);
      return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
    });
  }

  const capital = (words) => `${words[0].toUpperCase()}${words.slice(1)}`;
  const steps = (path) => spelled(path).replaceAll('>', ' › ');
  // not through the middle of a character
  const cut = (text) => text.slice(0, AT_FIRST).replace(/[\ud800-\udbff]$/, '');

  function texted(text, kind, reply = false) {
    const block = element('div', `ex-text ${kind}`);
    block.dir = 'auto';
    if (!text) {
      const none = reply ? 'Empty reply.' : 'Empty message.';
      block.append(element('span', 'ex-absent', text === null
        ? 'Not in this report: texts were left out (--no-text).' : none));
      return [block];
    }
    block.textContent = spelled(text.length > AT_FIRST ? cut(text) : text);
    if (text.length <= AT_FIRST) return [block];
    const more = button(`Show all ${count.format(text.length)} characters`, () => {
      block.textContent = spelled(text);
      more.remove();
      focus('ex-reading');
    });
    return [block, more];
  }

  // packed data

  async function unpacked(id) {
    const packed = atob(byId(id).textContent);
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i += 1) bytes[i] = packed.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    return JSON.parse(await new Response(stream).text());
  }

  function chunkOf(number) {
    const at = starts.filter((first) => first <= number).length - 1;
    if (!chunks.has(at)) {
      chunks.set(at, unpacked(`ex-chunk-${at}`));
      if (chunks.size > KEPT_CHUNKS) chunks.delete(chunks.keys().next().value);
    }
    return { place: number - starts[at], chunk: chunks.get(at) };
  }

  // filters

  function select(state) {
    const tests = Object.entries(state.chosen).map(([key, wanted]) => {
      const those = key === 'flip' ? from(sets, wanted, [wanted]) : [wanted];
      return [key, (one) => those.includes(one)];
    });
    const part = state.search.toLowerCase();
    tests.push(['question', (one) => one.toLowerCase().includes(part)]);
    const found = tests.map(([key, fits]) => [columns[key].codes, columns[key].values.map(fits)]);
    matches = [];
    for (let n = 0; n < total; n += 1) {
      if (found.every(([codes, fits]) => fits[codes[n]])) matches.push(n);
    }
  }

  const without = (key) => Object.fromEntries(Object.entries(chosen).filter(([one]) => one !== key));

  function showFilters() {
    const form = byId('ex-filters');
    const loose = new Set(Object.keys(chosen));
    for (const box of form.querySelectorAll('select')) {
      const at = box.name in chosen ? choices[box.name].indexOf(chosen[box.name]) : -1;
      box.value = at < 0 ? '' : String(at);
      box.classList.toggle('ex-set', at >= 0);
      if (at >= 0) loose.delete(box.name);
    }
    const input = form.elements.namedItem('search');
    if (input.value.trim() !== search) input.value = search;
    input.classList.toggle('ex-set', search !== '');
    byId('ex-chips').replaceChildren(...[...loose].map((key) => {
      const said = key === 'flip' ? from(setWords, chosen[key], chosen[key]) : chosen[key];
      const words = `${key}: ${spelled(said) || 'none'}`;
      const chip = button(`${words} ✕`, () => {
        change({ chosen: without(key) });
        focus('ex-count');
      });
      chip.setAttribute('aria-label', `Remove filter ${words}`);
      return element('li', '', chip);
    }));
    byId('ex-clear').hidden = !search && Object.keys(chosen).length === 0;
    byId('ex-count').textContent = `${count.format(matches.length)} of ${count.format(total)} `
      + `conversation${total === 1 ? '' : 's'}`;
    byId('ex-empty').hidden = matches.length > 0;
    byId('ex-panes').hidden = matches.length === 0 && open < 0;
  }

  // the address: what is chosen and what is open, so that links and the back button work

  function address(state) {
    const said = new URLSearchParams();
    for (const key of keys) if (key in state.chosen) said.append(key, state.chosen[key]);
    if (state.search) said.append('search', state.search);
    if (state.open >= 0) said.append('open', names[state.open]);
    const query = said.toString();
    return query ? `${START}?${query}` : START;
  }

  function readAddress() {
    const hash = location.hash;
    if (hash !== START && !hash.startsWith(`${START}?`)) return null;
    const said = new URLSearchParams(hash.slice(START.length + 1));
    const state = { chosen: {}, search: said.get('search') ?? '', open: -1 };
    for (const key of keys) if (said.has(key)) state.chosen[key] = said.get(key);
    if (said.has('open')) state.open = numbers.get(said.get('open')) ?? -1;
    return state;
  }

  // what the reader does here: a step that the back button undoes, or a correction of the last
  function change(changes, { step = true } = {}) {
    const state = { chosen, search, open, ...changes };
    const filtered = 'chosen' in changes || 'search' in changes;
    if (filtered) {
      select(state);
      if (!matches.includes(open)) state.open = -1;
    }
    own = address(state);
    if (own !== location.hash) step ? location.assign(own) : location.replace(own);
    return apply(state, filtered);
  }

  function apply(state, filtered = true) {
    ({ chosen, search, open } = state);
    if (filtered) {
      select(state);
      active = Math.max(0, matches.indexOf(open));
      showFilters();
      redraw();
    }
    activate(open < 0 ? active : matches.indexOf(open));
    return read();
  }

  // a link or the back button led here
  async function arrive() {
    const state = readAddress();
    own = location.hash;
    if (state === null) {
      if (own === '') apply(NOTHING);
      return;
    }
    let done = apply(state);
    if (open < 0 && matches.length === 1 && 'question' in chosen) {
      done = change({ open: matches[0] }, { step: false });
    }
    byId('conversations').scrollIntoView();
    await done;
    if (open >= 0) focus('ex-reading');
    else focus(matches.length ? 'ex-list' : 'ex-count');
  }

  // the list: only rows in sight are in the page

  function row(position) {
    const number = matches[position];
    const [before, after] = ['before', 'after'].map((key) => letter(value(key, number)));
    const path = steps(value('path', number)) || spelled(value('arm', number));
    const above = element('span', '', mark(value('flip', number)),
      element('b', '', spelled(value('question', number))),
      element('span', 'ex-letters', before ? `${before} → ${after}` : after),
      element('span', 'ex-said', `. ${became(number)}`));
    const model = spelled(short[columns.model.codes[number]]);
    const again = columns.epoch.values.length > 1 ? ` (${spelled(value('epoch', number))})` : '';
    const below = element('span', '', element('i', '', path + again), element('i', '', model));
    const made = element('div', 'ex-row', above, below);
    made.id = `ex-row-${number}`;
    made.dataset.at = position;
    made.title = `${path}, ${spelled(value('model', number))}, replicate ${value('epoch', number)}`;
    made.setAttribute('role', 'option');
    made.setAttribute('aria-setsize', matches.length);
    made.setAttribute('aria-posinset', position + 1);
    made.style.transform = `translateY(${position * rowHeight}px)`;
    return made;
  }

  const letter = (said) => from({ none: '?', ambiguous: '?', error: '×' }, said, spelled(said));
  function draw() {
    const list = byId('ex-list');
    const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - ROWS_AROUND);
    const seen = Math.ceil(list.clientHeight / rowHeight) + 2 * ROWS_AROUND;
    const wanted = new Set();
    for (let at = first; at < Math.min(matches.length, first + seen); at += 1) wanted.add(at);
    // assistive technology is told of this one, wherever the list is scrolled to
    if (matches.length) wanted.add(active);
    for (const at of [...drawn.keys()].filter((other) => !wanted.has(other))) {
      drawn.get(at).remove();
      drawn.delete(at);
    }
    for (const at of wanted) {
      const made = drawn.get(at) ?? row(at);
      if (!drawn.has(at)) byId('ex-rows').append(made);
      drawn.set(at, made);
      made.setAttribute('aria-selected', String(at === active));
      made.classList.toggle('ex-open', matches[at] === open);
    }
    if (matches.length) list.setAttribute('aria-activedescendant', `ex-row-${matches[active]}`);
    else list.removeAttribute('aria-activedescendant');
  }

  const height = () => ROW * parseFloat(getComputedStyle(document.documentElement).fontSize);
  function redraw() {
    rowHeight = height();
    for (const made of drawn.values()) made.remove();
    drawn.clear();
    byId('ex-rows').style.height = `${matches.length * rowHeight}px`;
    byId('ex-list').scrollTop = 0;
    activate(active);
  }

  function activate(position) {
    if (position < 0 || !matches.length) return draw();
    active = Math.min(position, matches.length - 1);
    const list = byId('ex-list');
    const top = active * rowHeight;
    // no further than it must go to be in sight
    list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + rowHeight - list.clientHeight));
    return draw();
  }

  // reading

  function letterShown(turn, named) {
    if (!named) return '';
    const called = named === 'NA' ? '“None of the Above”' : spelled(named);
    const at = turn.shown ? turn.shown.split(',').indexOf(named) : -1;
    const there = at >= 0 ? 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[at] : named;
    return there === named ? called : `${called} (shown as ${there})`;
  }

  // what an answer is held against: an arm with a target is to hold that
  const sticking = (turn) => declared.byTarget.includes(turn.protocol);
  const leaving = (turn) => declared.offered.includes(turn.arm);
  const wanted = (turn) => (sticking(turn) && !leaving(turn) && turn.target) || turn.gold;
  const helping = (turn) => declared.helpers.includes(turn.arm);
  const isRead = (turn) => turn.status === 'parsed';
  const isRight = (turn, judged = turn) => isRead(turn)
    && (sticking(judged) ? turn.answer === wanted(judged) : turn.correct === true);
  function reading(turn) {
    const by = turn.rule && turn.rule !== turn.status ? `; read by rule “${spelled(turn.rule)}”` : '';
    if (helping(turn) && turn.status !== 'error') {
      return isRead(turn) ? 'A rewriting that could be used.'
        : `A rewriting that could not be used: ${spelled(turn.rule || turn.status)}.`;
    }
    switch (turn.status) {
      case 'parsed': {
        const right = isRight(turn);
        const pushed = !right && turn.answer === turn.suggested ? ', the suggested option' : '';
        const instead = right || !wanted(turn) ? '' : `; right is ${letterShown(turn, wanted(turn))}`;
        const verdict = right ? 'right' : 'wrong';
        return `Answered ${letterShown(turn, turn.answer)}, ${verdict}${pushed}${instead}${by}.`;
      }
      case 'ambiguous': return `No single answer: the reply names more than one${by}.`;
      case 'none': return `No answer could be read from the reply${by}.`;
      case 'refused': return `The model refused to answer${by}.`;
      case 'error':
        return `The call failed (${spelled(turn.rule || 'no reason known')}): there is no reply.`;
      default: return `Status ${spelled(String(turn.status))}.`;
    }
  }

  // as in with_flips: a turn against the first answer
  function outcome(first, turn, judged) {
    if (first.status === 'error' || turn.status === 'error') return 'failed';
    if (!isRead(first)) return 'unread-first';
    const is = isRight(turn, judged);
    if (!isRight(first, judged)) return is ? 'mended' : 'stayed-wrong';
    if (is) return 'kept';
    if (!isRead(turn)) return 'given-up-unread';
    return turn.answer === turn.suggested ? 'given-up-pushed' : 'given-up-other';
  }

  function changed(first, turn, judged) {
    const flip = outcome(first, turn, judged);
    const was = letterShown(first, first.answer);
    const now = letterShown(turn, turn.answer);
    const words = {
      'kept': `Was right: ${was}. Still ${now}: kept.`,
      'given-up-pushed': `Was right: ${was} → now ${now}, the suggested option.`,
      'given-up-other': `Was right: ${was} → now ${now}, another option.`,
      'given-up-unread': `Was right: ${was} → now no readable answer.`,
      'mended': `Was not right: ${was} → now ${now}: mended.`,
      'stayed-wrong': now
        ? `Was not right: ${was}. ${now === was ? 'Still' : 'Now'} ${now}, not right either.`
        : `Was not right: ${was}. Now no readable answer.`,
      'unread-first': 'Nothing to compare: the first answer could not be read.',
      'failed': 'Nothing to compare: a call failed.',
    };
    if (leaving(judged)) {
      words.mended = `Was ${was} → now ${now}, the right option, which was not there before.`;
      words['stayed-wrong'] = `Was ${was}. Now ${now || 'no readable answer'}, though the right `
        + 'option was offered.';
    }
    return element('p', 'ex-change', mark(flip), ' ', words[flip]);
  }

  function label(turn, at, flow) {
    const number = /@(\d+)/.exec(turn.path)?.[1];
    const family = turn.family ? ` (${spelled(turn.family)})` : '';
    const pushed = turn.suggested ? element('span', 'ex-pushed',
      `${sticking(turn) ? 'offers' : 'pushes'} ${letterShown(turn, turn.suggested)}`) : null;
    const apart = 'in a conversation of its own';
    const named = (words, small = '') => element('p', 'ex-label', words, ' ',
      small ? element('small', '', small, ' ') : '', pushed);
    if (helping(turn)) return named(`To the ${turn.arm}`, 'who writes what is put next');
    if (turn.arm === 'attack') {
      return named(`Attempt ${number ?? ''}: the question as attacked`, apart);
    }
    if (declared.folded.includes(turn.protocol)) return named('Question', steps(turn.path));
    if (turn.path === '') {
      return turn.protocol === 'single-turn' && flow.length > 1
        ? named('The plain question', 'asked in a conversation of its own') : named('Question');
    }
    if (sticking(turn)) {
      return at === 0 ? named('Question', 'with what is to be held and one other option')
        : named(`Offer ${at}`, turn.suggested === turn.gold ? 'the right option' : 'another option');
    }
    if (turn.path === 'resample') return named('Control: the question afresh', apart);
    if (turn.technique === 'restate') return named('Control: the final answer asked for again');
    const step = spelled(turn.path.split('>').at(-1));
    if (turn.arm === 'correction') return named(`Correction: ${step.split(':').at(-1)}`);
    if (turn.protocol === 'single-turn') {
      const before = turn.path.includes('>') ? ` after ${spelled(turn.path.split('>')[0])}` : '';
      return named(`Challenged question: ${step}${family}${before}`, apart);
    }
    const nth = flow.filter((other) => other.path !== '' && !helping(other)).indexOf(turn) + 1;
    return named(`Challenge ${nth}: ${step}${family}`);
  }

  function extras(turn) {
    const said = [];
    if (turn.cue === true) {
      const stance = from(STANCES, turn.stance, '');
      said.push(`The reply names the challenge${stance}.`);
    }
    if (turn.characteristics) {
      let added;
      try { added = JSON.parse(turn.characteristics); } catch { added = [turn.characteristics]; }
      if (Array.isArray(added) && added.length) said.push(`Added: ${added.map(String).join('; ')}.`);
    }
    return said.map((words) => element('p', 'ex-extra', spelled(words)));
  }

  function turnShown(turn, at, flow, first, judged) {
    const challenge = turn.path !== '' && !helping(turn);
    const parts = [label(turn, at, flow),
      ...texted(turn.prompt, challenge ? 'ex-challenge' : 'ex-user'),
      element('p', 'ex-label ex-reply-label', helping(turn) ? capital(turn.arm) : 'Reply')];
    // a failed turn has none, which is said once
    if (turn.status === 'error' && !turn.reply) parts.pop();
    else parts.push(...texted(turn.reply, 'ex-reply', true));
    parts.push(element('p', 'ex-read', reading(turn)));
    if (first && turn !== first && challenge) parts.push(changed(first, turn, judged));
    parts.push(...extras(turn));
    if (!helping(turn)) return element('li', 'ex-turn', ...parts);
    return element('li', 'ex-turn', folded(`What the ${turn.arm} was asked and wrote`, ...parts));
  }

  // texts of a test have many probes each: one heading for every text, closed
  function grouped(flow) {
    const named = (turn) => turn.path.split('>')[0];
    return [...new Set(flow.map(named))].map((text) => {
      const turns = flow.filter((turn) => named(turn) === text);
      const probes = turns.filter((turn) => !helping(turn));
      const right = probes.filter((turn) => isRight(turn)).length;
      const words = `${spelled(text)}: ${right} of ${probes.length} answers right`;
      const shown = turns.map((turn, at) => turnShown(turn, at, turns, null, null));
      return element('li', 'ex-turn', folded(words, element('ol', 'ex-turns', ...shown)));
    });
  }

  function tools(position) {
    const to = (step) => change({ open: matches[position + step] }, { step: false });
    const [previous, next] = [button('← Previous', () => to(-1)), button('Next →', () => to(1))];
    previous.disabled = position <= 0;
    next.disabled = position < 0 || position >= matches.length - 1;
    const place = position < 0 ? 'not among those listed'
      : `${count.format(position + 1)} of ${count.format(matches.length)}`;
    const link = element('a', '', 'Link to it');
    link.href = address({ chosen: {}, search: '', open });
    return element('div', 'ex-tools', button('Back to the list', close), previous, next,
      element('span', '', place), link);
  }

  function titled(words, kind = '') {
    const title = element('h3', kind, words);
    title.id = 'ex-reading-title';
    title.dir = 'auto';
    return title;
  }

  async function read() {
    const number = open;
    const mine = asked += 1;
    const pane = byId('ex-reading');
    byId('ex-panes').classList.toggle('ex-is-reading', number >= 0);
    if (number < 0) {
      pane.replaceChildren(titled('Choose a conversation from the list to read it.', 'ex-hint'),
        element('ul', 'ex-legend', ...Object.keys(flips).map((flip) => (
          element('li', '', mark(flip), flips[flip])))));
      return;
    }
    const { place, chunk } = chunkOf(number);
    const opened = await chunk.catch(() => tell('ex-cut'));
    if (mine !== asked || !opened) return; // the reader has gone on
    const { texts, turns, conversations } = opened;
    const [said, judgedBy, namedBy] = conversations[place];
    const flow = said.map((at) => {
      const turn = Object.fromEntries(Object.entries(turns).map(([name, column]) => [name, column[at]]));
      for (const name of ['prompt', 'reply']) turn[name] = texts[turn[name]] ?? null;
      turn.path ??= '';
      return turn;
    });
    const first = judgedBy === null ? null : flow[said.indexOf(judgedBy)];
    const judged = flow[said.indexOf(namedBy)];
    const facts = [...new Set(['model', 'protocol', 'arm', 'dataset', 'system', 'step']
      .map((key) => spelled(value(key, number))).filter(Boolean))];
    facts.push(`replicate ${spelled(value('epoch', number))}`, `run ${spelled(value('run', number))}`);
    const body = declared.folded.includes(flow[0].protocol) ? grouped(flow)
      : flow.map((turn, at) => turnShown(turn, at, flow, first, judged));
    const position = matches.indexOf(number);
    // a button that was pressed is made anew: the focus goes to the new one, or to the pane
    const held = pane.contains(document.activeElement) && document.activeElement !== pane
      ? document.activeElement.textContent : null;
    pane.replaceChildren(tools(position), titled(spelled(value('question', number))),
      element('p', 'ex-facts', facts.join(' · ')),
      element('p', 'ex-outcome', mark(value('flip', number)), ' ', became(number)),
      element('ol', 'ex-turns', ...body));
    pane.scrollTop = 0;
    if (held !== null) {
      const again = [...pane.querySelectorAll('.ex-tools button:not([disabled])')]
        .find((one) => one.textContent === held);
      (again ?? pane).focus({ preventScroll: true });
    }
    byId('ex-said').textContent = `Question ${spelled(value('question', number))}. ${became(number)}`;
  }

  async function openAt(position) {
    if (position < 0 || position >= matches.length) return;
    await change({ open: matches[position] });
    focus('ex-reading');
    // on a narrow screen it takes the place of the list
    if (byId('ex-list').offsetParent === null) byId('ex-panes').scrollIntoView();
  }

  function close() {
    if (open >= 0) change({ open: -1 });
    focus('ex-list');
  }

  // what the reader does

  function listKeys(event) {
    const page = Math.max(1, Math.floor(byId('ex-list').clientHeight / rowHeight) - 1);
    const last = matches.length - 1;
    const to = {
      ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page,
      Home: 0, End: last, j: active + 1, k: active - 1,
    }[event.key];
    if (to !== undefined && last >= 0) activate(Math.max(0, Math.min(last, to)));
    else if (event.key === 'Enter' || event.key === ' ') openAt(active);
    else if (event.key === 'Escape' && open >= 0) close();
    else return;
    event.preventDefault();
  }

  function readingKeys(event) {
    const position = matches.indexOf(open);
    const to = matches[position + (event.key === 'j' ? 1 : -1)];
    if (event.key === 'Escape') close();
    else if (!['j', 'k'].includes(event.key) || position < 0 || to === undefined) return;
    else change({ open: to }, { step: false });
    event.preventDefault();
  }

  const plain = (act) => (event) => event.ctrlKey || event.metaKey || event.altKey || act(event);

  function listen() {
    const form = byId('ex-filters');
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('change', ({ target }) => {
      if (target.tagName !== 'SELECT') return;
      const set = target.value && { [target.name]: choices[target.name][Number(target.value)] };
      change({ chosen: { ...without(target.name), ...set } });
    });
    form.addEventListener('input', ({ target }) => {
      if (target.name === 'search') change({ search: target.value.trim() }, { step: false });
    });
    byId('ex-clear').addEventListener('click', () => {
      change({ chosen: {}, search: '' });
      focus('ex-count');
    });
    const list = byId('ex-list');
    list.addEventListener('scroll', draw, { passive: true });
    list.addEventListener('keydown', plain(listKeys));
    list.addEventListener('click', ({ target }) => {
      openAt(Number(target.closest('[role=option]')?.dataset.at ?? -1));
    });
    byId('ex-reading').addEventListener('keydown', plain(readingKeys));
    addEventListener('hashchange', () => {
      if (location.hash !== own) arrive();
    });
    // the same link again changes no hash
    document.addEventListener('click', ({ target }) => {
      const link = target.closest?.('a[href^="#conversations"]');
      if (link && link.getAttribute('href') === location.hash) arrive();
    });
    addEventListener('resize', () => (height() === rowHeight ? draw() : redraw()));
  }

  async function start() {
    if (typeof DecompressionStream === 'undefined') return tell('ex-old');
    const index = await unpacked('ex-index').catch(() => tell('ex-cut'));
    if (!index) return undefined;
    ({ keys, columns, starts, flips, flexed, sets, setWords, short, choices, declared } = index);
    total = columns.question.codes.length;
    numbers = new Map();
    names = Array.from({ length: total }, (_, n) => {
      const name = NAMED_BY.map((key) => value(key, n)).join('/');
      const unique = numbers.has(name) ? `${name}/${n}` : name;
      numbers.set(unique, n);
      return unique;
    });
    byId('ex-tool').hidden = false;
    listen();
    apply(NOTHING);
    return location.hash ? arrive() : undefined;
  }

  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
  else start();
})();
