"use strict";
// Sends files piece by piece: what breaks off goes on where it was. Without this script the form works by itself.
(() => {
  const form = document.getElementById("upload");
  if (!form) return;
  const list = document.getElementById("transfers");
  const summary = document.getElementById("summary");
  const AT_ONCE = 2, TRIES = 8;
  const waiting = [];
  let running = 0, done = 0, failed = 0;
  const pause = (ms) => new Promise((go) => setTimeout(go, ms));
  const size = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let at = 0;
    while (bytes >= 1024 && at < 4) { bytes /= 1024; at += 1; }
    return `${at ? bytes.toFixed(1) : bytes} ${units[at]}`;
  };
  const address = (item) => {
    const path = item.path.split("/").map(encodeURIComponent).join("/");
    return `${location.pathname}${path}?modified=${item.file.lastModified}`;
  };
  class Refused extends Error {}

  // What the server has of a file already.
  async function state(item) {
    const headers = { Accept: "application/json", "Content-Range": `bytes */${item.file.size}` };
    const answer = await fetch(address(item), { method: "PUT", headers });
    const said = await answer.text();
    if (answer.ok) return JSON.parse(said);
    if (answer.status >= 500 && answer.status !== 507 || answer.status === 409) throw new Error(said);
    throw new Refused(said);
  }

  function send(item, offset) {
    return new Promise((go, stop) => {
      const request = new XMLHttpRequest();
      request.open("PUT", address(item));
      request.setRequestHeader("Accept", "application/json");
      const total = item.file.size;
      if (offset > 0) request.setRequestHeader("Content-Range", `bytes ${offset}-${total - 1}/${total}`);
      request.upload.onprogress = (event) => {
        if (event.loaded > 0) item.moved = true;
        show(item, offset + event.loaded);
      };
      request.onload = () => {
        if (request.status < 300) go(JSON.parse(request.responseText));
        else if (request.status >= 500 && request.status !== 507 || request.status === 409) stop(new Error(request.responseText));
        else stop(new Refused(request.responseText));
      };
      request.onerror = () => stop(new Error("the connection was lost"));
      request.send(offset > 0 ? item.file.slice(offset) : item.file);
    });
  }

  async function place(item) {
    for (let tries = 0; ;) {
      item.moved = false;
      try {
        const have = await state(item);
        if (have.done) return have;
        return await send(item, have.offset);
      } catch (error) {
        if (error instanceof Refused) throw error;
        tries = item.moved ? 1 : tries + 1;
        if (tries > TRIES) throw error;
        item.text.textContent = `${error.message}; trying again`;
        await pause(Math.min(500 * 2 ** tries, 30000));
      }
    }
  }

  function show(item, bytes) {
    item.bar.value = bytes;
    item.text.textContent = `${size(bytes)} of ${size(item.file.size)}`;
  }

  function add(file, path) {
    const item = { file, path: path.replace(/^\/+/, "") };
    const line = document.createElement("li");
    const name = document.createElement("div");
    name.textContent = item.path;
    item.bar = document.createElement("progress");
    item.bar.max = Math.max(file.size, 1);
    item.bar.value = 0;
    item.bar.setAttribute("aria-label", item.path);
    item.text = document.createElement("span");
    item.text.className = "soft";
    item.text.textContent = "waiting";
    line.append(name, item.bar, item.text);
    list.append(line);
    waiting.push(item);
    next();
  }

  function next() {
    while (running < AT_ONCE && waiting.length > 0) {
      const item = waiting.shift();
      running += 1;
      place(item).then((answer) => {
        done += 1;
        item.bar.value = item.bar.max;
        item.text.textContent = answer.note || (answer.name === item.path ? "done" : `done, as ${answer.name}`);
      }, (error) => {
        failed += 1;
        item.text.className = "bad";
        item.text.textContent = error.message.trim();
      }).then(() => {
        running -= 1;
        next();
      });
    }
    const left = running + waiting.length;
    const parts = [`${done} done`];
    if (failed) parts.push(`${failed} failed`);
    if (left) parts.push(`${left} to go`);
    summary.textContent = parts.join(", ");
    summary.dataset.left = left;
  }

  async function walk(entry, path) {
    if (entry.isFile) {
      const file = await new Promise((go, stop) => entry.file(go, stop));
      return add(file, path + entry.name);
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((go, stop) => reader.readEntries(go, stop));
      if (some.length === 0) return;
      for (const inner of some) await walk(inner, `${path}${entry.name}/`);
    }
  }

  for (const input of form.querySelectorAll("input[type=file]")) {
    input.addEventListener("change", () => {
      for (const file of input.files) add(file, file.webkitRelativePath || file.name);
      input.value = "";
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").hidden = true;
  const target = document.getElementById("drop");
  const over = (event) => {
    event.preventDefault();
    target.classList.add("over");
  };
  addEventListener("dragover", over);
  addEventListener("dragleave", () => target.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    target.classList.remove("over");
    const entries = Array.from(event.dataTransfer.items, (item) => item.webkitGetAsEntry && item.webkitGetAsEntry());
    const files = Array.from(event.dataTransfer.files);
    entries.forEach((entry, at) => {
      if (entry) walk(entry, "").catch(() => { failed += 1; next(); });
      else if (files[at]) add(files[at], files[at].name);
    });
  });
  addEventListener("beforeunload", (event) => { if (running > 0) event.preventDefault(); });
  form.dataset.script = "ready";
})();
