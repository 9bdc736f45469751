// Makes pages live, and adds the palette. Every page can be read without this file.
"use strict";

const live = document.getElementById("live");

function tell(text, isLost) {
  if (!live) return;
  live.hidden = !text;
  // A text that stays is not read out again.
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("lost", isLost);
}

// Tells a link or a button of a part from the others, so that the focus stays where it is when the
// part is made anew.
function focusKey(part, one) {
  return one && part.contains(one) ? one.href || one.form?.elements.do?.value : undefined;
}

// Replaces the part of the page that the server made with the same part made now. Requests do not
// overlap; changes that come meanwhile lead to one more. Calls `done` when the part is there.
function renewer(part, address, done) {
  let isBusy = false;
  let isWanted = false;
  return async function renew(mark) {
    if (isBusy) {
      isWanted = true;
      return;
    }
    isBusy = true;
    let isThere = false;
    try {
      const known = new Set([...part.querySelectorAll("tr[data-uuid]")].map((row) => row.dataset.uuid));
      const reply = await fetch(address());
      if (reply.ok) {
        // A part without events has no other sign that the console is back.
        if (part.dataset.every) tell("", false);
        const html = await reply.text();
        const focus = focusKey(part, document.activeElement);
        // The server has escaped every value.
        part.innerHTML = html;
        if (focus) [...part.querySelectorAll("a, button")].find((one) => focusKey(part, one) === focus)?.focus({ preventScroll: true });
        isThere = true;
        for (const row of mark ? part.querySelectorAll("tr[data-uuid]") : []) {
          if (!known.has(row.dataset.uuid)) row.classList.add("added");
        }
      } else if (reply.headers.get("content-type")?.startsWith("text/plain")) {
        // Why the part cannot be made, for example because its rows could not be put in order.
        tell((await reply.text()).trim(), true);
      }
    } catch {
      tell("disconnected", true);
    }
    isBusy = false;
    if (isWanted) {
      isWanted = false;
      setTimeout(() => renew(true), 200);
    } else if (isThere && done) {
      done(renew);
    }
  };
}

function glow(cell) {
  cell.classList.remove("glow");
  void cell.offsetWidth;
  cell.classList.add("glow");
}

// Calls `handle` with each event and its number; `resync` when events may have been missed; `begin`
// with the number of the event before the first one. The stream tells whether the contents are
// current, and why they are not.
function listen(address, handle, resync, begin, wasOpen = false) {
  const source = new EventSource(address);
  source.onopen = () => {
    if (wasOpen) resync();
    wasOpen = true;
  };
  source.addEventListener("state", (event) => {
    const trouble = JSON.parse(event.data);
    tell(trouble ? `not current: ${trouble}` : "live", Boolean(trouble));
  });
  source.onerror = () => {
    tell("disconnected", true);
    // The browser gives up after an answer that is no stream, as while the schema is read anew.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(address, handle, resync, begin, wasOpen), 2000);
  };
  source.onmessage = (event) => handle(JSON.parse(event.data), Number(event.lastEventId));
  if (begin) source.addEventListener("at", (event) => begin(Number(event.lastEventId)));
}

function tableIsLive(part) {
  const query = new URLSearchParams(location.search);
  query.set("part", "rows");
  // The number of the last event that the rows show, and that of the last one that has come.
  const shown = () => Number(part.querySelector("#rows")?.dataset.event);
  let last = 0;
  // An order or a number that is not there yet is asked for again.
  const isUnready = () => part.querySelector("#unready");
  const renew = renewer(part, () => `${location.pathname}?${query}`, (renew) => {
    if (shown() < last) renew(true);
    else if (isUnready()) setTimeout(() => renew(false), 500);
  });
  if (isUnready()) setTimeout(() => renew(false), 500);
  // Whether a changed row may have come, gone or moved.
  const isOrdered = () => query.has("where") || query.has("sort");
  listen(part.dataset.events, (event, number) => {
    last = number;
    if (number <= shown()) return;
    if (!event.rows || number !== shown() + 1) return renew(true);
    part.querySelector("#rows").dataset.event = number;
    let isMoved = isOrdered();
    for (const [uuid, kind, cells] of event.rows) {
      if (kind !== "modify") {
        isMoved = true;
        continue;
      }
      const row = part.querySelector(`tr[data-uuid="${CSS.escape(uuid)}"]`);
      for (const [name, html] of row ? Object.entries(cells) : []) {
        const cell = row.querySelector(`td[data-label="${CSS.escape(name)}"]`);
        if (!cell) continue;
        cell.innerHTML = html;
        glow(cell);
      }
    }
    if (isMoved) renew(true);
  }, () => renew(false), (number) => {
    last = number;
    if (number > shown()) renew(true);
  });
}

function rowIsLive(table) {
  listen(table.dataset.rowEvents, (event) => {
    for (const [uuid, kind, cells] of event.rows || []) {
      if (uuid !== table.dataset.uuid) continue;
      if (kind === "delete") {
        for (const row of table.querySelectorAll("tbody tr")) row.classList.add("gone");
        tell("the row was deleted", true);
      }
      for (const [name, html] of Object.entries(cells)) {
        const cell = table.querySelector(`td[data-label="${CSS.escape(name)}"]`);
        if (!cell) continue;
        cell.innerHTML = html;
        cell.parentElement.classList.remove("default");
        glow(cell);
      }
    }
    if (!event.rows) location.reload();
  }, () => location.reload());
}

// The palette: `/` opens it, and it leads to every link of the page and every table.
function palette() {
  const dialog = document.createElement("dialog");
  const input = document.createElement("input");
  const list = document.createElement("ul");
  input.type = "search";
  input.setAttribute("aria-label", "Go to");
  input.placeholder = "Go to a database, a page or a table";
  list.setAttribute("role", "listbox");
  dialog.append(input, list);
  document.body.append(dialog);
  let places = [];
  let chosen = 0;
  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = places.filter(([text]) => words.every((word) => text.toLowerCase().includes(word))).slice(0, 40);
    chosen = Math.min(chosen, Math.max(found.length - 1, 0));
    list.replaceChildren(...found.map(([text, href], index) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.textContent = text;
      link.href = href;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(index === chosen));
      item.append(link);
      return item;
    }));
  }
  input.oninput = () => { chosen = 0; show(); };
  dialog.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = Math.max(0, Math.min(list.children.length - 1, chosen + step));
      show();
      list.children[chosen]?.scrollIntoView({ block: "nearest" });
      event.preventDefault();
    } else if (event.key === "Enter") {
      list.children[chosen]?.querySelector("a").click();
    }
  };
  return async () => {
    const seen = new Map();
    for (const link of document.querySelectorAll("main a[href], header a[href], nav a[href]")) {
      if (link.textContent.trim()) seen.set(link.href, link.textContent.trim());
    }
    places = [...seen].map(([href, text]) => [text, href]);
    input.value = "";
    chosen = 0;
    show();
    dialog.showModal();
    try {
      const more = await (await fetch("/places.json")).json();
      places = [...more, ...places];
      show();
    } catch { /* The links of the page are there. */ }
  };
}

const open = palette();
document.addEventListener("keydown", (event) => {
  const isText = event.target.closest("input, textarea, select, dialog");
  if (isText || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    open();
  } else if (event.key === "f") {
    const filter = document.getElementById("where");
    if (filter) { event.preventDefault(); filter.focus(); }
  } else if (event.key === "n" || event.key === "p") {
    document.querySelector(`a[rel="${event.key === "n" ? "next" : "prev"}"]`)?.click();
  }
});

const part = document.querySelector("#part[data-events]");
if (part) tableIsLive(part);
const row = document.querySelector("#row[data-row-events]");
if (row) rowIsLive(row);

// A part that the server makes anew now and then, except while text of it is marked.
const timed = document.querySelector("#part[data-every]");
if (timed) {
  const renew = renewer(timed, () => timed.dataset.address);
  const isMarked = () => !getSelection().isCollapsed && timed.contains(getSelection().anchorNode);
  setInterval(() => document.hidden || isMarked() || renew(false), Number(timed.dataset.every));
}

// A picture is drawn anew after changes. `apply` zooms one that has just been drawn.
function pictureIsLive(drawn, apply) {
  // The version that is shown, and the last one that an event has told of.
  const shown = () => Number(drawn.querySelector("#drawn")?.dataset.version);
  let last = 0;
  const renew = renewer(drawn, () => drawn.dataset.address, (renew) => {
    apply();
    if (shown() < last) renew(false);
  });
  // Replaces the parts of the picture that have changed.
  const replace = (event, version) => {
    const svg = drawn.querySelector("svg");
    const find = (key) => svg.querySelector(`g[data-key="${CSS.escape(key)}"]`);
    for (const key of event.gone) find(key)?.remove();
    for (const [key, group, text] of event.parts) {
      const holder = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      // The server has escaped every value.
      holder.innerHTML = text;
      const old = find(key);
      if (old) old.replaceWith(holder.firstElementChild);
      else svg.querySelector(`g.${group}`).append(holder.firstElementChild);
    }
    const summary = drawn.querySelector("#drawn");
    summary.textContent = event.summary;
    summary.dataset.version = version;
    svg.querySelector("desc").textContent = event.summary;
  };
  listen(drawn.dataset.picture, (event, version) => {
    last = version;
    if (version === shown()) return;
    if (event.parts && Number(event.before) === shown()) replace(event, version);
    else renew(false);
  }, () => renew(false), (version) => {
    last = version;
    if (version !== shown()) renew(false);
  });
}

// A picture is panned by dragging and zoomed by the wheel with Ctrl, or by `+`, `-` and `0`. One of
// the past, or of a schema without an interpretation, has no events.
const drawn = document.querySelector("#part[data-picture]") || document.querySelector("#part .canvas")?.closest("#part");
if (drawn) {
  let zoom = 1;
  const apply = () => {
    const svg = drawn.querySelector("svg");
    if (!svg) return;
    for (const side of ["width", "height"]) {
      svg.dataset[side] ||= svg.getAttribute(side) || "";
      if (svg.dataset[side]) svg.setAttribute(side, parseFloat(svg.dataset[side]) * zoom);
    }
  };
  if (drawn.dataset.picture) pictureIsLive(drawn, () => zoom === 1 || apply());
  const by = (factor) => { zoom = Math.min(4, Math.max(0.2, factor ? zoom * factor : 1)); apply(); };
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey) return;
    if (event.key === "+") by(1.25);
    if (event.key === "-") by(0.8);
    if (event.key === "0") by(0);
  });
  drawn.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    by(event.deltaY < 0 ? 1.15 : 0.87);
  }, { passive: false });
  drawn.addEventListener("pointerdown", (event) => {
    const canvas = event.target.closest(".canvas");
    if (!canvas || event.target.closest("a") || event.button) return;
    const begin = [event.clientX + canvas.scrollLeft, event.clientY + canvas.scrollTop];
    const move = (to) => { canvas.scrollLeft = begin[0] - to.clientX; canvas.scrollTop = begin[1] - to.clientY; };
    document.addEventListener("pointermove", move);
    document.addEventListener("pointerup", () => document.removeEventListener("pointermove", move), { once: true });
  });
}

// Changes arrive as lines, newest first; the oldest go.
const recent = document.querySelector("#recent[data-changes]");
if (recent) {
  const body = recent.tBodies[0];
  listen(recent.dataset.changes, (event) => {
    const lines = document.createElement("template");
    lines.innerHTML = event.html;
    const wanted = recent.dataset.table;
    for (const line of [...lines.content.children].reverse()) {
      if (wanted && line.dataset.of !== wanted) continue;
      line.classList.add("added");
      body.prepend(line);
    }
    while (body.children.length > 500) body.lastElementChild.remove();
  }, () => location.reload());
}

// Candidates while somebody types, from the server: arrows choose, Tab or Enter takes, Escape closes.
function completes(field) {
  const list = document.createElement("ul");
  list.id = `${field.id}-candidates`;
  list.className = "candidates";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Candidates");
  const around = document.createElement("span");
  around.className = "completed";
  field.replaceWith(around);
  around.append(field, list);
  // The list of the page is for browsers without scripts.
  field.removeAttribute("list");
  // A box of several lines stays what it is: only a field of one line may be a combobox.
  const isBox = field.tagName === "TEXTAREA";
  const expand = (isOpen) => isBox || field.setAttribute("aria-expanded", String(isOpen));
  if (!isBox) field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  expand(false);
  field.setAttribute("aria-label", around.closest("label")?.firstChild.textContent.trim() || "Text");
  let from = 0;
  let chosen = -1;
  let last = null;
  let timer = 0;
  function close() {
    clearTimeout(timer);
    last?.abort();
    list.hidden = true;
    chosen = -1;
    expand(false);
    field.removeAttribute("aria-activedescendant");
  }
  function choose(index) {
    chosen = index;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
    const item = list.children[index];
    if (!item) return;
    field.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({ block: "nearest" });
  }
  function take(index) {
    const text = list.children[index].dataset.text;
    const end = field.selectionStart;
    const rest = field.value.slice(end);
    const between = !isBox ? (rest.startsWith(" ") ? "" : " ") : (rest.startsWith('"') ? "" : '"');
    field.setRangeText(text + between, from, end, "end");
    close();
    ask();
  }
  async function ask() {
    const text = field.value.slice(0, field.selectionStart);
    if (text.length > 2000) return close();
    last?.abort();
    last = new AbortController();
    try {
      const query = new URLSearchParams({ text });
      const reply = await fetch(`${field.dataset.complete}?${query}`, { signal: last.signal });
      if (!reply.ok) return close();
      const found = await reply.json();
      from = found.from;
      // Alone and typed already, or nothing.
      const typed = text.slice(from);
      const isDone = found.candidates.length === 1 && found.candidates[0][0] === typed;
      if (!found.candidates.length || isDone || document.activeElement !== field) return close();
      list.replaceChildren(...found.candidates.map(([candidate, note], index) => {
        const item = document.createElement("li");
        item.id = `${list.id}-${index}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        item.dataset.text = candidate;
        item.append(candidate);
        if (note) {
          const more = document.createElement("span");
          more.className = "quiet";
          more.textContent = note;
          item.append(more);
        }
        item.onmousedown = (event) => { event.preventDefault(); take(index); };
        return item;
      }));
      list.hidden = false;
      chosen = -1;
      field.removeAttribute("aria-activedescendant");
      expand(true);
      list.dataset.typed = typed;
    } catch { /* A later request took its place, or the server is gone. */ }
  }
  const soon = () => { clearTimeout(timer); timer = setTimeout(ask, 60); };
  field.addEventListener("input", soon);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (list.hidden) {
      if (event.key === "ArrowDown" && event.altKey) { event.preventDefault(); ask(); }
      return;
    }
    const count = list.children.length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      choose(chosen < 0 ? (step > 0 ? 0 : count - 1) : (chosen + step + count) % count);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      take(chosen);
    } else if (event.key === "Tab" && !event.shiftKey && (chosen >= 0 || list.dataset.typed)) {
      // Without a choice and without a letter, Tab leaves the field.
      event.preventDefault();
      take(Math.max(chosen, 0));
    }
  });
}
document.querySelectorAll("[data-complete]").forEach(completes);
