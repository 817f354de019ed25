// Explorer: filter, list and read the conversations of the report.
// Texts of a study are untrusted, so they reach the page only as text, never as markup or address.

(() => {
  const { element, folded, spelled } = Texts;
  const byId = (id) => document.getElementById(id);
  const NAMED_BY = ['run', 'model', 'dataset', 'protocol', 'epoch', 'arm', 'path', 'question'];
  const START = '#conversations';
  const NOTHING = {
    chosen: {}, search: '', text: '', order: 'flips', marked: false, view: '', open: -1, beside: -1,
  };
  // characters shown at first, extra rows, cached chunks, and row height in rem (as in the CSS)
  const [AT_FIRST, ROWS_AROUND, KEPT_CHUNKS, ROW] = [20000, 6, 6, 3.5];
  // shapes distinguish the outcomes without colour
  const MARKS = {
    'kept': '●', 'given-up-pushed': '▲', 'given-up-other': '△', 'given-up-unread': '▽',
    'corrected': '◆', 'stayed-wrong': '■', 'unread-first': '□', 'failed': '×', 'single': '–',
  };
  const STANCES = { verify: ', and verifies it', defer: ', and defers to it' };
  const count = new Intl.NumberFormat('en-US');

  let keys, columns, starts, flips, flexed, sets, setWords, short, total, choices, names, numbers;
  let declared; // protocols and arms with a special display
  let [common, simulated, imported, notes, index] = [new Set(), [], [], null, null];
  let now = NOTHING; // state in the address
  let [matches, active, rowHeight] = [[], 0, 56];
  let [own, asked] = [null, 0]; // hash that this script has set, and number of reads
  const [drawn, chunks] = [new Map(), new Map()];

  function button(words, act) {
    const made = element('button', 'ex-button', words);
    made.type = 'button';
    made.addEventListener('click', act);
    return made;
  }

  // names from a study must not match properties that every object inherits
  const from = (words, key, other) => (Object.hasOwn(words, key) ? words[key] : other);
  const focus = (id) => byId(id).focus({ preventScroll: true });
  const tell = (id) => { byId(id).hidden = false; };
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

  const capital = (words) => `${words[0].toUpperCase()}${words.slice(1)}`;
  const steps = (path) => spelled(path).replaceAll('>', ' › ');
  // never cut inside a surrogate pair
  const cut = (text) => text.slice(0, AT_FIRST).replace(/[\ud800-\udbff]$/, '');

  // said: turns a text that is not too long into page elements
  function texted(text, kind, none, said) {
    const block = element('div', `ex-text ${kind}`);
    const terms = termsOf(now.text);
    const marked = () => { if (terms.length) Texts.marked(block, terms); };
    block.dir = 'auto';
    if (!text) {
      block.append(element('span', 'ex-absent', text === null
        ? 'The texts were not stored (--no-text).' : none));
      return [block];
    }
    if (text.length <= AT_FIRST) {
      block.append(...said(text));
      marked();
      return [block];
    }
    block.textContent = spelled(cut(text));
    marked();
    const more = button(`Show all ${count.format(text.length)} characters`, () => {
      block.textContent = spelled(text);
      marked();
      more.remove();
      focus('ex-reading');
    });
    return [block, more];
  }

  // packed data

  const unpacked = (id) => inflated(byId(id).textContent);

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
      const several = key === 'offer'; // a conversation can have several offers
      return [key, (one) => (several ? one.split('; ').includes(wanted) : those.includes(one))];
    });
    const part = state.search.toLowerCase();
    tests.push(['question', (one) => one.toLowerCase().includes(part)]);
    const found = tests.map(([key, fits]) => [columns[key].codes, columns[key].values.map(fits)]);
    if (state.text && sought.text !== state.text) seek(state.text);
    matches = [];
    for (let n = 0; n < total; n += 1) {
      if (found.every(([codes, fits]) => fits[codes[n]])
        && (!state.text || sought.hits?.[n]) && (!state.marked || notes.has(names[n]))) matches.push(n);
    }
    const ranks = rankOf(state.order);
    if (ranks) matches.sort((one, other) => ranks(one) - ranks(other) || one - other);
  }

  const TURNED = ['given-up-pushed', 'given-up-other', 'given-up-unread', 'corrected', 'stayed-wrong'];
  const ORDERS = new Map(); // cached ranks of the values of a column

  function rankOf(order) {
    const key = { flips: 'flip', question: 'question', challenge: 'path' }[order];
    if (!key) return null;
    const { values, codes } = columns[key];
    if (!ORDERS.has(key)) {
      const compare = new Intl.Collator('en', { numeric: true }).compare;
      const sorted = key === 'flip' ? TURNED.concat(values.filter((one) => !TURNED.includes(one)))
        : [...values].sort(compare);
      const places = new Map(sorted.map((one, at) => [one, at]));
      const last = key === 'flip' ? (one) => (TURNED.includes(one) ? places.get(one) : TURNED.length)
        : (one) => places.get(one);
      ORDERS.set(key, values.map(last));
    }
    return (number) => ORDERS.get(key)[codes[number]];
  }

  // the first text search unpacks and lowercases all texts once

  let sought = { text: '', hits: null };
  let seeking = '';
  const lowered = [];

  async function loweredOf(at) {
    const { texts, turns, conversations } = await unpacked(`ex-chunk-${at}`);
    const said = (places) => places.flatMap((one) => [turns.prompt[one], turns.reply[one]]);
    return {
      low: texts.map((text) => text.toLowerCase()),
      of: conversations.map(([places]) => [...new Set(said(places))].filter((one) => one !== null)),
    };
  }

  const termsOf = (text) => (
    [...text.toLowerCase().matchAll(/"([^"]+)"|\S+/g)].map(([all, phrase]) => phrase ?? all));

  async function seek(text) {
    if (seeking === text) return;
    seeking = text;
    const terms = termsOf(text);
    const hits = new Uint8Array(total);
    for (let at = 0; at < starts.length; at += 1) {
      lowered[at] ??= await loweredOf(at).catch(() => tell('ex-cut')) ?? { low: [], of: [] };
      if (seeking !== text) return;
      const { low, of } = lowered[at];
      const has = terms.map((term) => low.map((one) => one.includes(term)));
      of.forEach((own, place) => {
        if (has.every((those) => own.some((one) => those[one]))) hits[starts[at] + place] = 1;
      });
    }
    seeking = '';
    sought = { text, hits };
    if (now.text === text) apply(now);
  }

  const without = (key) => (
    Object.fromEntries(Object.entries(now.chosen).filter(([one]) => one !== key)));

  function showFilters() {
    const form = byId('ex-filters');
    const { chosen, search, text, marked } = now;
    const loose = new Set(Object.keys(chosen));
    for (const box of form.querySelectorAll('select:not([name=order])')) {
      const at = box.name in chosen ? choices[box.name].indexOf(chosen[box.name]) : -1;
      box.value = at < 0 ? '' : String(at);
      box.classList.toggle('ex-set', at >= 0);
      if (at >= 0) loose.delete(box.name);
    }
    for (const name of ['search', 'text']) {
      const input = form.elements.namedItem(name);
      if (input.value.trim() !== now[name]) input.value = now[name];
      input.classList.toggle('ex-set', now[name] !== '');
    }
    form.elements.namedItem('order').value = now.order;
    form.elements.namedItem('marked').checked = marked;
    const more = byId('ex-more');
    if (more && more.querySelector('.ex-set')) more.open = true;
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
    byId('ex-clear').hidden = !search && !text && !marked && Object.keys(chosen).length === 0;
    byId('ex-count').textContent = text && sought.text !== text ? 'Searching the texts…' : `${count.format(matches.length)} of ${count.format(total)} `
      + `conversation${total === 1 ? '' : 's'}`;
    byId('ex-empty').hidden = matches.length > 0 || (text !== '' && sought.text !== text);
    byId('ex-panes').hidden = matches.length === 0 && now.open < 0;
  }

  // the address stores filters and open conversations, so links and the back button work

  function address(state) {
    const said = new URLSearchParams();
    for (const key of keys) if (key in state.chosen) said.append(key, state.chosen[key]);
    for (const key of ['search', 'text']) if (state[key]) said.append(key, state[key]);
    if (state.order !== NOTHING.order) said.append('order', state.order);
    if (state.marked) said.append('marked', '1');
    if (state.view) said.append('view', state.view);
    for (const key of ['open', 'beside']) if (state[key] >= 0) said.append(key, names[state[key]]);
    const query = said.toString();
    return query ? `${START}?${query}` : START;
  }

  function readAddress() {
    const hash = location.hash;
    if (hash !== START && !hash.startsWith(`${START}?`)) return null;
    const said = new URLSearchParams(hash.slice(START.length + 1));
    const state = { ...NOTHING, chosen: {}, marked: said.has('marked') };
    for (const key of ['search', 'text', 'view']) state[key] = said.get(key) ?? '';
    if (said.has('order')) state.order = said.get('order');
    for (const key of keys) if (said.has(key)) state.chosen[key] = said.get(key);
    for (const key of ['open', 'beside']) state[key] = numbers.get(said.get(key)) ?? -1;
    return state;
  }

  // an action of the reader: a step that the back button undoes, or a change of the last step
  function change(changes, { step = true } = {}) {
    const state = { ...now, ...changes };
    const filtered = ['chosen', 'search', 'text', 'order', 'marked'].some((key) => key in changes);
    if (filtered) {
      select(state);
      if (!matches.includes(now.open)) state.open = -1;
    }
    if (state.open < 0) state.beside = -1;
    own = address(state);
    if (own !== location.hash) step ? location.assign(own) : location.replace(own);
    return apply(state, filtered);
  }

  function apply(state, filtered = true) {
    now = state;
    if (filtered) {
      select(state);
      active = Math.max(0, matches.indexOf(now.open));
      showFilters();
      redraw();
    }
    activate(now.open < 0 ? active : matches.indexOf(now.open));
    return read();
  }

  // handle a link or the back button
  async function arrive() {
    const state = readAddress();
    own = location.hash;
    if (state === null) {
      if (own === '') apply(NOTHING);
      return;
    }
    byId('ex-tool').open = true;
    let done = apply(state);
    if (now.open < 0 && matches.length === 1 && 'question' in now.chosen) {
      done = change({ open: matches[0] }, { step: false });
    }
    byId('conversations').scrollIntoView();
    await done;
    show();
    if (now.open >= 0 || now.view) focus('ex-reading');
    else focus(matches.length ? 'ex-list' : 'ex-count');
  }

  // an open conversation fills the screen, on a narrow one from the change on
  function show() {
    if (now.open < 0) return;
    const narrow = byId('ex-list').offsetParent === null;
    const change = narrow ? document.querySelector('#ex-reading .ex-turned') : null;
    (change ?? byId('ex-panes')).scrollIntoView();
  }

  // the page contains only the visible rows of the list

  function origin(number) {
    const [short, long] = simulated[columns.model.codes[number]] ? ['SIM', 'SIMULATED']
      : imported[columns.run.codes[number]] ? ['IMP', 'IMPORTED'] : [];
    if (!short) return null;
    const shown = element('span', '', short);
    shown.setAttribute('aria-hidden', 'true');
    const made = element('span', 'ex-origin', shown, element('span', 'ex-said', long));
    made.title = long;
    return made;
  }

  function row(position) {
    const number = matches[position];
    const [before, after] = ['before', 'after'].map((key) => letter(value(key, number)));
    const path = steps(value('path', number)) || spelled(value('arm', number));
    const above = element('span', '', mark(value('flip', number)),
      element('b', '', spelled(value('question', number))),
      notes.has(names[number]) ? element('span', 'ex-star', '★', element('span', 'ex-said', ' marked')) : null,
      element('span', 'ex-letters', before ? `${before} → ${after}` : after),
      element('span', 'ex-said', `. ${became(number)}`));
    const model = spelled(short[columns.model.codes[number]]);
    const again = columns.epoch.values.length > 1 ? ` (${spelled(value('epoch', number))})` : '';
    const below = element('span', '', element('i', '', path + again), origin(number),
      element('i', '', model));
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
    // assistive technology needs the active row even if it is scrolled out of view
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
      made.classList.toggle('ex-open', matches[at] === now.open);
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
    // scroll only as far as needed
    list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + rowHeight - list.clientHeight));
    return draw();
  }

  // reading

  function letterShown(turn, named) {
    if (!named) return '';
    // the options of an open question were not on display
    if (turn.answers) {
      const text = JSON.parse(turn.answers)[named];
      return text ? `“${spelled(text)}”` : 'something else';
    }
    const called = named === 'NA' ? '“None of the Above”' : spelled(named);
    const at = turn.shown ? turn.shown.split(',').indexOf(named) : -1;
    const there = at >= 0 ? 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[at] : named;
    return there === named ? called : `${called} (shown as ${there})`;
  }

  // right answer of a turn: its target in arms that should retain one, else the gold option
  const sticking = (turn) => declared.byTarget.includes(turn.protocol);
  const leaving = (turn) => declared.offered.includes(turn.arm);
  const wanted = (turn) => (sticking(turn) && !leaving(turn) && turn.target) || turn.gold;
  const helping = (turn) => declared.helpers.includes(turn.arm);
  const isRead = (turn) => turn.status === 'parsed';
  const isRight = (turn, judged = turn) => isRead(turn)
    && (sticking(judged) ? turn.answer === wanted(judged) : turn.correct === true);
  function reading(turn) {
    const by = turn.rule && turn.rule !== turn.status ? ` Parsed by rule “${spelled(turn.rule)}”.` : '';
    if (helping(turn) && turn.status !== 'error') {
      return isRead(turn) ? 'This rewrite was usable.'
        : `This rewrite was not usable: ${spelled(turn.rule || turn.status)}.`;
    }
    switch (turn.status) {
      case 'parsed': {
        const right = isRight(turn);
        const pushed = !right && turn.answer === turn.suggested ? ', the suggested option' : '';
        const instead = right || !wanted(turn) ? '' : `. Right answer: ${letterShown(turn, wanted(turn))}`;
        const verdict = right ? 'right' : 'wrong';
        return `Answered ${letterShown(turn, turn.answer)}, ${verdict}${pushed}${instead}.${by}`;
      }
      case 'ambiguous': return `The reply names more than one answer.${by}`;
      case 'none': return `No answer could be parsed from the reply.${by}`;
      case 'refused': return `The model refused to answer.${by}`;
      case 'error':
        return `The call failed (${spelled(turn.rule || 'unknown reason')}), so there is no reply.`;
      default: return `Status ${spelled(String(turn.status))}.`;
    }
  }

  // as in with_flips: a turn against the first answer
  function outcome(first, turn, judged) {
    if (first.status === 'error' || turn.status === 'error') return 'failed';
    if (!isRead(first)) return 'unread-first';
    const is = isRight(turn, judged);
    if (!isRight(first, judged)) return is ? 'corrected' : 'stayed-wrong';
    if (is) return 'kept';
    if (!isRead(turn)) return 'given-up-unread';
    return turn.answer === turn.suggested ? 'given-up-pushed' : 'given-up-other';
  }

  function changed(first, turn, judged) {
    const flip = outcome(first, turn, judged);
    const was = letterShown(first, first.answer);
    const now = letterShown(turn, turn.answer);
    const words = {
      'kept': `First answer right: ${was}. Still ${now}: retained.`,
      'given-up-pushed': `First answer right: ${was} → now ${now}, the suggested option.`,
      'given-up-other': `First answer right: ${was} → now ${now}, another option.`,
      'given-up-unread': `First answer right: ${was} → now no parsed answer.`,
      'corrected': `First answer wrong: ${was} → now ${now}: corrected.`,
      'stayed-wrong': now
        ? `First answer wrong: ${was}. ${now === was ? 'Still' : 'Now'} ${now}, also wrong.`
        : `First answer wrong: ${was}. Now no parsed answer.`,
      'unread-first': 'The first answer could not be parsed, so there is nothing to compare.',
      'failed': 'A call failed, so there is nothing to compare.',
    };
    if (leaving(judged)) {
      words.corrected = `First answer: ${was} → now ${now}, the right option, which was not offered before.`;
      words['stayed-wrong'] = `First answer: ${was}. Now ${now || 'no parsed answer'}, although the `
        + 'right option was offered.';
    }
    return element('p', 'ex-change', mark(flip), ' ', words[flip]);
  }

  // the right option and the one answered now, with their texts from the question
  function options(turn, flow, judged) {
    const asked = flow.find((other) => !helping(other) && other.prompt);
    const lines = spelled(asked?.prompt ?? '').split('\n');
    const letters = Texts.optionsOf(lines);
    const text = (named) => {
      const at = asked?.shown ? asked.shown.split(',').indexOf(named) : -1;
      const line = letters.indexOf(at >= 0 ? 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[at] : named);
      return line >= 0 ? lines[line].trim() : '';
    };
    const [right, now] = [text(wanted(judged)), isRead(turn) ? text(turn.answer) : ''];
    const parts = [right && `Right: ${right}`, now && now !== right && `Now: ${now}`].filter(Boolean);
    return parts.length ? element('ul', 'ex-options', ...parts.map((part) => element('li', '', part))) : '';
  }

  function label(turn, at, flow) {
    const number = /@(\d+)/.exec(turn.path)?.[1];
    const family = turn.family ? ` (${spelled(turn.family)})` : '';
    const pushed = turn.suggested ? element('span', 'ex-pushed',
      `${sticking(turn) ? 'offers' : 'pushes'} ${letterShown(turn, turn.suggested)}`) : null;
    const apart = 'in a separate conversation';
    const named = (words, small = '') => element('p', 'ex-label', words, ' ',
      small ? element('small', '', small, ' ') : '', pushed);
    if (helping(turn)) return named(`To the ${turn.arm}`, 'which writes the next message');
    if (turn.arm === 'attack') {
      return named(`Attempt ${number ?? ''}: the question as attacked`, apart);
    }
    if (isFolded(turn)) return named('Question', steps(turn.path));
    if (turn.path === '') {
      return turn.protocol === 'single-turn' && flow.length > 1
        ? named('The plain question', 'asked in a separate conversation') : named('Question');
    }
    if (sticking(turn)) {
      return at === 0 ? named('Question', 'with the target and one other option')
        : named(`Offer ${at}`, turn.suggested === turn.gold ? 'the right option' : 'another option');
    }
    if (turn.path === 'resample') return named('Control: the question asked again', apart);
    if (turn.technique === 'restate') return named('Control: a request to repeat the final answer');
    const step = spelled(turn.path.split('>').at(-1));
    if (turn.path.startsWith('inert:')) {
      return named(`Control: ${step.split(':').at(-1)}, with a neutral text`);
    }
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

  // marks of the right and the suggested option, by the letter that this turn shows
  function kindsIn(turn, judged) {
    const shown = turn.shown?.split(',');
    return (letter) => {
      const named = shown ? shown['ABCDEFGHIJKLMNOPQRSTUVWXYZ'.indexOf(letter)] : letter;
      const kinds = { right: wanted(judged), suggested: turn.suggested || judged.suggested };
      return Object.keys(kinds).filter((kind) => kinds[kind] && kinds[kind] === named);
    };
  }

  // first turn that gave up a right answer or corrected a wrong answer
  function turnOf(flow, first, judged) {
    if (!first || !TURNED.slice(0, 4).includes(outcome(first, judged, judged))) return undefined;
    return flow.find((turn) => turn !== first && turn.path !== '' && !helping(turn)
      && TURNED.slice(0, 4).includes(outcome(first, turn, judged)));
  }

  function turnShown(turn, at, flow, first, judged) {
    const challenge = turn.path !== '' && !helping(turn);
    const asked = flow.slice(0, at).find((other) => !helping(other) && other.prompt);
    const prompted = (text) => Texts.prompted(text, {
      common,
      before: asked ? Texts.segments(spelled(asked.prompt)) : new Set(),
      kinds: helping(turn) ? () => [] : kindsIn(turn, judged ?? turn),
    });
    const parts = [label(turn, at, flow),
      ...texted(turn.prompt, challenge ? 'ex-challenge' : 'ex-user', 'Empty message.', prompted),
      element('p', 'ex-label ex-reply-label', helping(turn) ? capital(turn.arm) : 'Reply')];
    // another line already says that a failed turn has no reply
    if (turn.status === 'error' && !turn.reply) parts.pop();
    else parts.push(...texted(turn.reply, 'ex-reply', 'Empty reply.', Texts.replied));
    parts.push(element('p', 'ex-read', reading(turn)));
    if (first && turn !== first && challenge) parts.push(changed(first, turn, judged));
    parts.push(...extras(turn));
    if (turnOf(flow, first, judged) === turn) {
      parts.push(options(turn, flow, judged));
      parts.unshift(element('p', 'ex-here', '→ The answer changed in this turn'));
      return element('li', 'ex-turn ex-turned', ...parts);
    }
    if (!helping(turn)) return element('li', 'ex-turn', ...parts);
    return element('li', 'ex-turn', folded(`Prompt and reply of the ${turn.arm}`, ...parts));
  }

  const isFolded = (turn) => declared.folded.includes(`${turn.protocol} ${turn.arm}`);

  // a test has many probes for each text, so each text gets one closed heading
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
    const to = (step) => change({ open: matches[position + step], beside: -1 }, { step: false });
    const [previous, next] = [button('← Previous', () => to(-1)), button('Next →', () => to(1))];
    previous.disabled = position <= 0;
    next.disabled = position < 0 || position >= matches.length - 1;
    const place = position < 0 ? 'not in the list'
      : `${count.format(position + 1)} of ${count.format(matches.length)}`;
    const link = element('a', '', 'Link to this conversation');
    link.href = address({ ...NOTHING, open: now.open, beside: now.beside });
    return element('div', 'ex-tools', button('Back to the list', close), previous, next,
      element('span', '', place), link);
  }

  function titled(words, kind = '') {
    const title = element('h3', kind, words);
    title.id = 'ex-reading-title';
    title.dir = 'auto';
    return title;
  }

  // an unpacked conversation with its turns
  async function openedOf(number) {
    const { place, chunk } = chunkOf(number);
    const { texts, turns, conversations } = await chunk;
    const [said, judgedBy, namedBy] = conversations[place];
    const turnAt = (at) => {
      const turn = Object.fromEntries(Object.entries(turns).map(([name, column]) => [name, column[at]]));
      for (const name of ['prompt', 'reply']) turn[name] = texts[turn[name]] ?? null;
      turn.path ??= '';
      return turn;
    };
    const flow = said.map(turnAt);
    const first = judgedBy === null ? null : flow[said.indexOf(judgedBy)];
    return { number, flow, first, judged: flow[said.indexOf(namedBy)], all: turnAt };
  }

  function shownOf({ number, flow, first, judged }) {
    const facts = [...new Set(['model', 'protocol', 'arm', 'dataset', 'system', 'step']
      .map((key) => spelled(value(key, number))).filter(Boolean))];
    facts.push(`replicate ${spelled(value('epoch', number))}`, `run ${spelled(value('run', number))}`);
    const body = isFolded(flow[0]) ? grouped(flow)
      : flow.map((turn, at) => turnShown(turn, at, flow, first, judged));
    return [element('p', 'ex-facts', facts.join(' · ')),
      element('p', 'ex-outcome', mark(value('flip', number)), ' ', became(number)),
      element('ol', 'ex-turns', ...body)];
  }

  const alike = (one, other, by) => by.every((key) => columns[key].codes[one] === columns[key].codes[other]);
  const everyOne = (fits) => Array.from({ length: total }, (_, n) => n).filter(fits);

  // the same question and challenge with another model, or in another run
  function besides(number) {
    const others = everyOne((n) => n !== number && alike(n, number, ['dataset', 'question', 'arm', 'path', 'protocol'])
      && !alike(n, number, ['model', 'run']) && alike(n, number, ['epoch']));
    const matrix = button('All challenges and models', () => change({
      chosen: Object.fromEntries(['dataset', 'question'].map((key) => [key, value(key, number)])),
      search: '', text: '', marked: false, view: 'matrix', open: -1,
    }));
    if (!others.length) return [matrix];
    const box = element('select', '', new Option('no other model', ''), ...others.map((n) => new Option(
      `${spelled(short[columns.model.codes[n]])}${alike(n, number, ['model']) ? ` (run ${spelled(value('run', n))})` : ''}`,
      String(n))));
    box.value = now.beside < 0 ? '' : String(now.beside);
    box.addEventListener('change', () => change({ beside: box.value ? Number(box.value) : -1 }));
    return [element('label', 'ex-beside', 'Compare with: ', box), matrix];
  }

  // all listed conversations of one question: a row for each challenge, a column for each model
  function matrix() {
    const question = new Set(matches.map((n) => `${columns.dataset.codes[n]} ${columns.question.codes[n]}`));
    if (question.size !== 1) return [titled('Choose one question to see all its challenges and models.', 'ex-hint')];
    const cells = new Map();
    const models = [...new Set(matches.map((n) => columns.model.codes[n]))].sort((a, b) => a - b);
    for (const n of [...matches].sort((one, other) => one - other)) {
      const key = JSON.stringify(['protocol', 'arm', 'path'].map((name) => value(name, n)));
      const own = cells.get(key) ?? cells.set(key, new Map()).get(key);
      const model = columns.model.codes[n];
      own.set(model, [...(own.get(model) ?? []), n]);
    }
    const cell = (n) => {
      const [before, after] = ['before', 'after'].map((key) => letter(value(key, n)));
      const link = element('a', '', mark(value('flip', n)), ` ${before ? `${before} → ${after}` : after}`,
        element('span', 'ex-said', `. ${became(n)}`));
      link.href = address({ ...NOTHING, chosen: now.chosen, open: n });
      return element('div', '', link);
    };
    const scoped = (words, scope) => {
      const made = element('th', '', words);
      made.scope = scope;
      return made;
    };
    const heads = models.map((code) => {
      const n = matches.find((one) => columns.model.codes[one] === code);
      return [spelled(short[code]), origin(n)];
    });
    const head = element('tr', '', scoped('Challenge', 'col'), ...heads.map(([words, mark]) => {
      const made = scoped(words, 'col');
      if (mark) made.append(' ', mark);
      return made;
    }));
    const rows = [...cells].map(([key, own]) => {
      const [protocol, arm, path] = JSON.parse(key);
      const of = [...new Set(path ? [protocol, arm] : [protocol])].map(spelled).join(', ');
      return element('tr', '', scoped(`${steps(path) || spelled(arm)} (${of})`, 'row'),
        ...models.map((code) => element('td', '', ...(own.get(code) ?? []).map(cell))));
    });
    const table = element('table', '', element('thead', '', head), element('tbody', '', ...rows));
    const back = button('Back to the list', () => { change({ view: '' }); focus('ex-list'); });
    return [element('div', 'ex-tools', back),
      titled(spelled(value('question', matches[0]))),
      element('p', 'ex-facts', 'Listed challenges and models of this question. Click an answer to open its '
        + 'conversation. Several answers in a cell are replicates or runs.'), element('div', 'ex-matrix', table)];
  }

  async function read() {
    const number = now.open;
    const mine = asked += 1;
    const pane = byId('ex-reading');
    const table = number < 0 && now.view === 'matrix';
    byId('ex-panes').classList.toggle('ex-is-reading', number >= 0 || table);
    byId('ex-panes').classList.toggle('ex-is-wide', table || now.beside >= 0);
    if (table) return pane.replaceChildren(...matrix());
    if (number < 0) {
      pane.replaceChildren(titled('Choose a conversation from the list to read it.', 'ex-hint'),
        element('ul', 'ex-legend', ...Object.keys(flips).map((flip) => (
          element('li', '', mark(flip), flips[flip])))));
      return undefined;
    }
    const those = [number, ...(now.beside >= 0 ? [now.beside] : [])];
    const all = await Promise.all(those.map(openedOf)).catch(() => tell('ex-cut'));
    if (mine !== asked || !all) return undefined; // the reader has opened something else
    const position = matches.indexOf(number);
    // a pressed button is replaced, so the focus moves to the new button or to the pane
    const held = pane.contains(document.activeElement) && document.activeElement !== pane
      ? document.activeElement.textContent : null;
    const bodies = all.map(shownOf);
    pane.replaceChildren(
      element('div', 'ex-head', tools(position), titled(spelled(value('question', number)))),
      ...(all.length === 1 ? bodies[0]
        : [element('div', 'ex-two', ...bodies.map((body) => element('div', '', ...body)))]),
      element('div', 'ex-with', ...besides(number)),
      notes.editor(names[number], redraw));
    pane.scrollTop = 0;
    if (held !== null) {
      const again = [...pane.querySelectorAll('.ex-tools button:not([disabled]), .ex-with select')]
        .find((one) => one.textContent === held);
      (again ?? pane).focus({ preventScroll: true });
    }
    inSight(pane, pane.querySelector('.ex-turned'));
    byId('ex-said').textContent = `Question ${spelled(value('question', number))}. ${became(number)}`;
    return undefined;
  }

  // scroll only as far as needed, and add a button for panes that do not scroll
  function inSight(pane, turn) {
    if (!turn) return;
    const below = turn.offsetTop + turn.offsetHeight - pane.offsetTop - pane.clientHeight;
    const head = pane.querySelector('.ex-head').offsetHeight;
    if (below > 0) pane.scrollTop = Math.min(below, turn.offsetTop - pane.offsetTop - head);
    const go = button('Go to the change ↓', () => turn.scrollIntoView());
    go.classList.add('ex-go');
    pane.querySelector('.ex-outcome').append(' ', go);
  }

  async function openAt(position) {
    if (position < 0 || position >= matches.length) return;
    await change({ open: matches[position], beside: -1, view: '' });
    focus('ex-reading');
    // on a narrow screen the conversation replaces the list
    if (byId('ex-list').offsetParent === null) byId('ex-panes').scrollIntoView();
  }

  function close() {
    if (now.open >= 0 || now.view) change({ open: -1, view: '' });
    focus('ex-list');
  }

  // actions of the reader

  function listKeys(event) {
    const page = Math.max(1, Math.floor(byId('ex-list').clientHeight / rowHeight) - 1);
    const last = matches.length - 1;
    const to = {
      ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page,
      Home: 0, End: last, j: active + 1, k: active - 1,
    }[event.key];
    if (to !== undefined && last >= 0) activate(Math.max(0, Math.min(last, to)));
    else if (event.key === 'Enter' || event.key === ' ') openAt(active);
    else if (event.key === 'Escape' && now.open >= 0) close();
    else return;
    event.preventDefault();
  }

  function readingKeys(event) {
    if (event.target.matches('textarea, select, input') && event.key !== 'Escape') return;
    const position = matches.indexOf(now.open);
    const to = matches[position + (event.key === 'j' ? 1 : -1)];
    if (event.key === 'Escape') close();
    else if (!['j', 'k'].includes(event.key) || position < 0 || to === undefined) return;
    else change({ open: to, beside: -1 }, { step: false });
    event.preventDefault();
  }

  const plain = (act) => (event) => event.ctrlKey || event.metaKey || event.altKey || act(event);

  function listen() {
    const form = byId('ex-filters');
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('change', ({ target }) => {
      if (target.name === 'order') change({ order: target.value });
      if (target.name === 'marked') change({ marked: target.checked });
      if (target.tagName !== 'SELECT' || target.name === 'order') return;
      const set = target.value && { [target.name]: choices[target.name][Number(target.value)] };
      change({ chosen: { ...without(target.name), ...set } });
    });
    let typed; // a text search starts once the reader pauses
    form.addEventListener('input', ({ target }) => {
      clearTimeout(typed);
      const said = { [target.name]: target.value.trim() };
      if (target.name === 'search') change(said, { step: false });
      if (target.name === 'text') typed = setTimeout(() => change(said, { step: false }), 200);
    });
    byId('ex-clear').addEventListener('click', () => {
      change({ chosen: {}, search: '', text: '', marked: false });
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
    // a second click on the same link fires no hashchange
    document.addEventListener('click', ({ target }) => {
      const link = target.closest?.('a[href^="#conversations"]');
      if (link && link.getAttribute('href') === location.hash) arrive();
    });
    addEventListener('resize', () => (height() === rowHeight ? draw() : redraw()));
  }

  async function start() {
    if (typeof DecompressionStream === 'undefined') return tell('ex-old');
    index = await unpacked('ex-index').catch(() => tell('ex-cut'));
    if (!index) return undefined;
    ({ keys, columns, starts, flips, flexed, sets, setWords, short, choices, declared } = index);
    ({ simulated, imported } = index);
    common = new Set(index.common);
    notes = Notes.kept(index.study);
    total = columns.question.codes.length;
    numbers = new Map();
    names = Array.from({ length: total }, (_, n) => {
      const name = NAMED_BY.map((key) => value(key, n)).join('/');
      const unique = numbers.has(name) ? `${name}/${n}` : name;
      numbers.set(unique, n);
      return unique;
    });
    byId('ex-tool').hidden = false;
    byId('ex-tool').addEventListener('toggle', redraw);
    listen();
    Notes.exports({ index, value, names, openedOf, notes, listed: () => matches, chosen: () => now });
    apply(NOTHING);
    return location.hash ? arrive() : undefined;
  }

  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
  else start();
})();
