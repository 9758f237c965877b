"use strict";
(() => {
  // A table that is wider than its frame says so, until its end is seen.
  const frames = [...document.querySelectorAll(".scroll")];
  const cue = (frame) => frame.classList.toggle("more", frame.scrollWidth - frame.clientWidth - frame.scrollLeft > 4);
  const cueAll = () => frames.forEach(cue);
  frames.forEach((frame) => frame.addEventListener("scroll", () => cue(frame), { passive: true }));
  document.querySelectorAll("details").forEach((fold) => fold.addEventListener("toggle", cueAll));
  addEventListener("resize", cueAll);
  cueAll();

  const { record, view } = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("explorer");
  if (!root) return;
  const names = record.sources, p = names.length, methods = view.methods;
  // Traffic that is no mixture of the sources has no place among the mixtures.
  const today = record.traffic && !record.traffic.alarm.rings && record.traffic.estimate.mixture;
  const SVG = "http://www.w3.org/2000/svg";
  const CORNERS = [[150, 30], [25, 246.5], [275, 246.5]];

  // Untrusted names become text nodes and attributes, never markup.
  function make(tag, attributes = {}, text = "", space = null) {
    const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text) node.textContent = text;
    return node;
  }
  const add = (parent, ...rest) => parent.appendChild(make(...rest));
  // Shares are written as per cent, as in the tables; losses with their unit.
  const write = (value) => ((view.share ? 100 : 1) * value).toFixed(view.decimals).replace("-", "−")
    + (view.share ? "\u00a0%" : "");
  const said = (value) => write(value) + (view.unit ? `\u00a0${view.unit}` : "");
  const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
  const unit = (k) => names.map((_, j) => Number(j === k));

  // The loss on a mixture is L(λ) = Σ_k λ_k L_k.
  const lossOn = (losses, mixture) => losses.reduce((sum, L, k) => sum + mixture[k] * L, 0);

  function normalised(mixture) {
    const kept = mixture.map((share) => Math.max(share, 0));
    const total = kept.reduce((a, b) => a + b, 0);
    return total > 0 ? kept.map((share) => share / total) : names.map(() => 1 / p);
  }

  // One share is set; the others keep their proportions.
  function withShare(mixture, k, share) {
    const rest = 1 - mixture[k];
    return mixture.map((old, j) =>
      j === k ? share : rest > 1e-9 ? old * (1 - share) / rest : (1 - share) / (p - 1));
  }

  const toPoint = (mixture) => [0, 1].map((axis) => lossOn(CORNERS.map((c) => c[axis]), mixture));
  function toMixture([x, y]) {
    const [[ax, ay], [bx, by], [cx, cy]] = CORNERS;
    const area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);
    const b = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area;
    const c = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area;
    return normalised([1 - b - c, b, c]);
  }

  const controls = root.querySelector(".controls"), listeners = [];
  let mixture = names.map(() => 1 / p);
  function choose(next) {
    mixture = next;
    root.dataset.mixture = JSON.stringify(mixture);
    listeners.forEach((listen) => listen());
  }

  function addTriangle() {
    const draw = (parent, tag, attributes, text) => add(parent, tag, attributes, text, SVG);
    const svg = draw(controls, "svg", { class: "triangle", viewBox: "0 0 300 280" });
    draw(svg, "polygon", { points: CORNERS.join(" ") });
    for (const step of [0.25, 0.5, 0.75]) {
      for (let k = 0; k < 3; k++) {
        const [a, b] = [1, 2].map((d) => {
          const at = [0, 0, 0];
          at[k] = step; at[(k + d) % 3] = 1 - step;
          return toPoint(at);
        });
        draw(svg, "line", { class: "inner", x1: a[0], y1: a[1], x2: b[0], y2: b[1] });
      }
    }
    names.forEach((name, k) => {
      const short = name.length > 16 ? `${name.slice(0, 15)}…` : name;
      const [x, y] = [[150, 18], [25, 268], [275, 268]][k];
      const anchor = ["middle", "start", "end"][k];
      const label = draw(svg, "text", { x: k === 1 ? 2 : k === 2 ? 298 : x, y, style: `text-anchor:${anchor}` }, short);
      draw(label, "title", {}, name);
    });
    if (today) {
      const [cx, cy] = toPoint(today);
      draw(svg, "circle", { class: "today", cx, cy, r: 7 });
      const key = add(controls, "p", { class: "key" });
      add(key, "i");
      key.append("today’s traffic");
    }
    const handle = draw(svg, "circle", {
      class: "handle", r: 11, tabindex: 0, role: "slider", "aria-label": "Mixture of the sources",
      "aria-valuemin": 0, "aria-valuemax": 100,
    });
    const follow = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      choose(toMixture([at.x, at.y]));
    };
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      follow(event);
    });
    svg.addEventListener("pointermove", (event) => event.buttons && follow(event));
    handle.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!move) return;
      event.preventDefault();
      const size = event.shiftKey ? 25 : 5, [x, y] = toPoint(mixture);
      choose(toMixture([x + size * move[0], y + size * move[1]]));
    });
    listeners.push(() => {
      const [x, y] = toPoint(mixture);
      handle.setAttribute("cx", x);
      handle.setAttribute("cy", y);
      handle.setAttribute("aria-valuenow", Math.round(100 * mixture[0]));
      handle.setAttribute("aria-valuetext", names.map((n, k) => `${percent(mixture[k])} ${n}`).join(", "));
    });
  }

  function addSliders() {
    // Where there is a triangle the sliders are the second way, below the bars.
    const parent = p === 3 ? root.querySelector(".losses") : controls;
    names.forEach((name, k) => {
      const label = add(parent, "label", { class: "slider" });
      add(label, "span", { title: name }, name);
      const shown = add(label, "output");
      const input = add(label, "input", { type: "range", min: 0, max: 100, step: 1, "aria-label": `Share of ${name}` });
      input.addEventListener("input", () => choose(withShare(mixture, k, input.value / 100)));
      listeners.push(() => {
        input.value = 100 * mixture[k];
        input.setAttribute("aria-valuetext", percent(mixture[k]));
        shown.textContent = percent(mixture[k]);
      });
    });
  }

  function addPresets() {
    const presets = add(controls, "div", { class: "presets" });
    const button = (text, target) =>
      add(presets, "button", { type: "button" }, text).addEventListener("click", () => choose(target));
    button("equal parts", names.map(() => 1 / p));
    if (p <= 8) names.forEach((name, k) => button(`only ${name}`, unit(k)));
    if (today) button("today’s traffic", normalised(today));
  }

  function addBars() {
    const bars = root.querySelector(".bars"), verdict = document.getElementById("verdict");
    const all = methods.flatMap((method) => method.losses);
    // The scale stays, so that bars of different mixtures can be compared.
    const low = Math.min(0, ...all), span = Math.max(...all, 0) - low || 1;
    const rows = methods.map((method) => {
      const mark = method.ours ? " ours" : "";
      add(bars, "span", { class: `name${mark}`, title: method.name }, method.name);
      const bar = add(bars, "span", { class: `bar${mark}`, "aria-hidden": "true" });
      return { method, bar, value: add(bars, "span", { class: `value${mark}` }) };
    });
    listeners.push(() => {
      const losses = methods.map((method) => lossOn(method.losses, mixture));
      const least = Math.min(...losses);
      rows.forEach(({ bar, value, method }, a) => {
        bar.style.setProperty("--size", `${100 * (losses[a] - low) / span}%`);
        value.textContent = write(losses[a]);
        value.classList.toggle("lowest", losses[a] === least);
      });
      const best = methods[losses.indexOf(least)], ours = methods.findIndex((method) => method.ours);
      const lowest = `${best.name} loses ${said(least)}, the least of all`;
      const beside = best.ours || ours < 0 ? "" : `; ${methods[ours].name} loses ${said(losses[ours])}`;
      const where = names.map((n, k) => [mixture[k], n]).filter(([share]) => share >= 0.005)
        .map(([share, n]) => `${percent(share)} ${n}`).join(", ");
      verdict.textContent = `On ${where}: ${lowest}${beside}.`;
    });
  }

  if (p === 3) addTriangle();
  addSliders();
  addPresets();
  addBars();
  choose(mixture);
})();
