// Tables: sorting by a column, and hiding of models.

(() => {
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

  function hiding(tables, box) {
    const boxes = [...box.querySelectorAll('input')];
    const models = boxes.map((one) => one.value);
    const named = (text) => models.filter((model) => text === model
      || (text.startsWith(model) && /[\s,(:·]/.test(text[model.length])))
      .sort((one, other) => other.length - one.length)[0];
    const own = new Map(models.map((model) => [model, []])); // table parts of each model
    for (const table of tables) {
      const add = (model, parts) => own.get(model)?.push(...parts);
      for (const { part, bodies } of blocksOf(table)) {
        const rows = bodies.flatMap((one) => one.rows);
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
    const show = () => {
      for (const one of boxes) for (const part of own.get(one.value)) part.hidden = !one.checked;
      const left = boxes.filter((one) => one.checked).length;
      box.querySelector('summary').textContent = `Models shown in tables: ${left === boxes.length
        ? 'all' : `${left} of ${boxes.length}`}`;
    };
    const said = new URLSearchParams(location.search).getAll('hide');
    for (const one of boxes) one.checked = !said.includes(one.value);
    box.addEventListener('change', () => {
      show();
      const query = new URLSearchParams(boxes.filter((one) => !one.checked).map((one) => ['hide', one.value]));
      history.replaceState(null, '', `${location.pathname}${query.size ? `?${query}` : ''}${location.hash}`);
    });
    box.hidden = false;
    box.open = said.length > 0;
    show();
  }

  const tables = [...document.querySelectorAll('main .wide > table')];
  tables.forEach(sortable);
  const box = document.getElementById('shown-models');
  if (box) hiding(tables, box);
})();
