// Tables: sorting by a column, and hiding of models.

const Tables = (() => {
  const compare = new Intl.Collator('en', { numeric: true }).compare;
  const NUMBER = /^[\s$€<>≤≥~+]*([-−]?[\d,]*\.?\d+)/;

  const NONE = new Set(['–', 'n/a']);

  function textOf(row, at) {
    const text = row.cells[at]?.textContent.trim() ?? '';
    return NONE.has(text) ? '' : text;
  }

  const numberIn = (text) => Number(NUMBER.exec(text)?.[1].replace('−', '-').replaceAll(',', '') ?? NaN);

  // rows below each heading, by group
  function blocksOf(table) {
    const blocks = [];
    for (const body of table.tBodies) {
      const part = body.querySelector('tr.part');
      if (part || !blocks.length) blocks.push({ part, bodies: [] });
      blocks.at(-1).bodies.push({ body, rows: [...body.rows].filter((row) => row !== part) });
    }
    return blocks;
  }

  function sort(blocks, at, way) {
    const all = blocks.flatMap(({ bodies }) => bodies.flatMap(({ rows }) => rows));
    const said = all.map((row) => textOf(row, at)).filter(Boolean);
    const numeric = said.every((text) => Number.isFinite(numberIn(text)));
    const order = (one, other) => {
      const [a, b] = [textOf(one, at), textOf(other, at)];
      if (!a || !b) return Number(!a) - Number(!b); // empty cells come last
      return way * (numeric ? numberIn(a) - numberIn(b) : compare(a, b));
    };
    for (const { bodies } of blocks) {
      if (way) bodies[0].body.append(...bodies.flatMap(({ rows }) => rows).sort(order));
      else for (const { body, rows } of bodies) body.append(...rows);
    }
  }

  function sortable(table) {
    const heads = [...(table.tHead?.rows ?? [])].at(-1);
    const blocks = blocksOf(table);
    if (!heads || blocks.every(({ bodies }) => bodies.flatMap(({ rows }) => rows).length < 2)) return;
    for (const head of heads.querySelectorAll('th')) {
      const press = document.createElement('button');
      press.type = 'button';
      press.className = 'sort';
      press.append(...head.childNodes);
      head.append(press);
      press.addEventListener('click', () => {
        const was = head.getAttribute('aria-sort');
        for (const other of heads.querySelectorAll('[aria-sort]')) other.removeAttribute('aria-sort');
        const next = was === 'descending' ? 'ascending' : was === 'ascending' ? null : 'descending';
        if (next) head.setAttribute('aria-sort', next);
        sort(blocks, head.cellIndex, { descending: -1, ascending: 1 }[next] ?? 0);
      });
    }
  }

  // a row, a column or all rows below a heading belong to the model in their label

  const box = document.getElementById('shown-models');
  const boxes = [...(box?.querySelectorAll('input') ?? [])];
  const models = boxes.map((input) => input.value);
  const partsOf = new Map(models.map((model) => [model, []])); // table parts of each model
  const named = (text) => models.filter((model) => text === model
    || (text.startsWith(model) && /[\s,(:·]/.test(text[model.length])))
    .sort((first, second) => second.length - first.length)[0];

  function collect(table) {
    const add = (model, parts) => partsOf.get(model)?.push(...parts);
    for (const { part, bodies } of blocksOf(table)) {
      const rows = bodies.flatMap((body) => body.rows);
      const model = part && named(part.textContent.trim());
      if (model) add(model, [part, ...rows]);
      else {
        for (const row of rows) {
          add([...row.cells].map((cell) => named(cell.textContent.trim())).find(Boolean), [row]);
        }
      }
    }
    for (const head of [...(table.tHead?.rows ?? [])].at(-1)?.cells ?? []) {
      const cells = [...table.tBodies].flatMap((body) => [...body.rows])
        .filter((row) => !row.matches('.part')).map((row) => row.cells[head.cellIndex]);
      if (head.cellIndex) add(named(head.textContent.trim()), [head, ...cells.filter(Boolean)]);
    }
  }

  function show() {
    if (!box) return;
    for (const input of boxes) {
      for (const part of partsOf.get(input.value)) part.hidden = !input.checked;
    }
    const left = boxes.filter((input) => input.checked).length;
    box.querySelector('summary').textContent = `Models shown in tables: ${left === boxes.length
      ? 'all' : `${left} of ${boxes.length}`}`;
  }

  // makes the tables of an element sortable, and hides the models that are not shown
  function enhance(root) {
    const tables = [...root.querySelectorAll('.wide > table')];
    tables.forEach(sortable);
    tables.forEach(collect);
    show();
  }

  if (box) {
    const hidden = new URLSearchParams(location.search).getAll('hide');
    for (const input of boxes) input.checked = !hidden.includes(input.value);
    box.addEventListener('change', () => {
      show();
      const query = new URLSearchParams(boxes.filter((input) => !input.checked)
        .map((input) => ['hide', input.value]));
      history.replaceState(null, '', `${location.pathname}${query.size ? `?${query}` : ''}${location.hash}`);
    });
    box.hidden = false;
    box.open = hidden.length > 0;
  }
  enhance(document.querySelector('main'));
  return { enhance };
})();
