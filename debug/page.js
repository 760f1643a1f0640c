"use strict";
// Fetches the page anew and puts its report in place of the one that is shown. It stops while the
// page is not seen, while something in it is selected, and while it is paused.
(() => {
  const interval = 2000;
  const status = document.getElementById("status");
  const pause = document.getElementById("pause");
  let paused = false;
  let updates = 0;
  let busy = false;

  const say = (text, bad) => {
    status.textContent = text;
    status.className = bad ? "bad" : "";
    document.body.classList.toggle("stale", Boolean(bad));
  };
  const shown = () => new Date(Number(document.getElementById("report").dataset.time)).toISOString().slice(11, 19) + " UTC";

  const update = async () => {
    const selection = document.getSelection();
    if (paused || busy || document.hidden || (selection && !selection.isCollapsed)) {
      return;
    }
    busy = true;
    try {
      const answer = await fetch("?format=html", { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!answer.ok) {
        throw new Error("the answer is " + answer.status);
      }
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const report = fresh.getElementById("report");
      if (!report) {
        throw new Error("the answer is another page");
      }
      if (paused) {
        return;
      }
      document.getElementById("report").replaceWith(document.adoptNode(report));
      document.title = fresh.title;
      document.documentElement.dataset.updates = String(++updates);
      say(shown());
    } catch (err) {
      say("no answer since " + shown() + ": " + err.message, true);
    } finally {
      busy = false;
    }
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(paused));
    say(paused ? "paused at " + shown() : shown());
    update();
  });
  document.addEventListener("visibilitychange", update);
  say(shown());
  setInterval(update, interval);
})();
