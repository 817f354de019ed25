// Folded parts of the page: markup of this file that is packed until its heading is opened.

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

  for (const part of parts) part.addEventListener('toggle', () => part.open && unfold(part));
  addEventListener('hashchange', arrive);
  arrive();
})();
