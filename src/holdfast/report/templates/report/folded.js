// Folded parts of the page: markup of this file that is packed until its heading is opened. A page
// of a run that goes on loads itself again and keeps its place.

(() => {
  const parts = [...document.querySelectorAll('details.folded')];

  async function unfold(part) {
    const packed = part.querySelector(':scope > script');
    if (!packed || part.dataset.opening) return;
    part.dataset.opening = 'true';
    const box = document.createElement('div');
    try {
      box.innerHTML = await inflated(packed.textContent);
    } catch {
      box.textContent = 'This browser is too old to open this part, or the file is truncated.';
    }
    packed.replaceWith(box);
    Tables.enhance(box);
  }

  // opens what contains the target of the address, and scrolls to it
  async function arrive() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id || id.startsWith('conversations')) return;
    const part = parts.find((one) => one.dataset.anchors.split(' ').includes(id));
    if (part) await unfold(part);
    let target = document.getElementById(id);
    for (let box = target; box; box = box.parentElement) if (box.matches('details')) box.open = true;
    if (target?.previousElementSibling?.matches('.lead')) target = target.previousElementSibling;
    target?.scrollIntoView();
  }

  const PLACE = `holdfast place ${location.pathname}`;
  const boxes = () => [...document.querySelectorAll('details')];
  const nameOf = (box) => box.id || box.querySelector('summary').textContent;

  async function restore() {
    const { open, top } = JSON.parse(sessionStorage.getItem(PLACE) ?? '{}');
    if (!open) return false;
    sessionStorage.removeItem(PLACE);
    await Promise.all(parts.filter((part) => open.includes(nameOf(part))).map(unfold));
    for (const box of boxes()) box.open = open.includes(nameOf(box));
    setTimeout(() => scrollTo(0, top)); // once the conversations are in their place
    return true;
  }

  function reload() {
    if (document.activeElement?.matches('input, textarea, select')) return setTimeout(reload, 1000);
    const open = boxes().filter((box) => box.open).map(nameOf);
    sessionStorage.setItem(PLACE, JSON.stringify({ open, top: scrollY }));
    return location.reload();
  }

  for (const part of parts) part.addEventListener('toggle', () => part.open && unfold(part));
  addEventListener('hashchange', arrive);
  const seconds = document.querySelector('meta[name="refresh-seconds"]')?.content;
  if (!seconds) arrive();
  else {
    history.scrollRestoration = 'manual';
    restore().then((done) => done || arrive());
    setTimeout(reload, 1000 * seconds);
  }
})();
