// One tooltip for everything that can be pointed at or reached with the keyboard.

const tip = document.getElementById("tip");

export function explain(element, text) {
  const show = (x, y) => {
    tip.textContent = text();
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 12) : y + 18}px`;
  };
  element.addEventListener("pointermove", (event) => show(event.clientX, event.clientY));
  element.addEventListener("pointerleave", hide);
  element.addEventListener("focus", () => {
    const box = element.getBoundingClientRect();
    show(box.left + box.width / 2, box.bottom - 12);
  });
  element.addEventListener("blur", hide);
  return element;
}

export function hide() {
  tip.hidden = true;
}

addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
addEventListener("scroll", hide, { passive: true });
