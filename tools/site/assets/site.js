// Theme, menu, versions, search, copying. Without scripts the pages can be read all the same.
(() => {
	const up = document.currentScript.dataset.up;
	const root = document.documentElement;
	const system = matchMedia("(prefers-color-scheme: dark)");
	const store = { get() { try { return localStorage.getItem("theme"); } catch { return null; } }, set(v) { try { localStorage.setItem("theme", v); } catch { } } };
	const paint = () => { root.dataset.theme = store.get() || (system.matches ? "dark" : "light"); };
	paint();
	system.addEventListener("change", paint);

	document.addEventListener("DOMContentLoaded", () => {
		const at = (id) => document.getElementById(id);
		at("theme").addEventListener("click", () => { store.set(root.dataset.theme === "dark" ? "light" : "dark"); paint(); });
		at("menu").addEventListener("click", () => { at("menu").setAttribute("aria-expanded", at("nav").classList.toggle("open")); });
		at("version").addEventListener("change", (e) => { location.href = e.target.value; });
		for (const code of document.querySelectorAll(".code")) {
			const copy = document.createElement("button");
			copy.className = "copy";
			copy.textContent = "copy";
			copy.addEventListener("click", () => navigator.clipboard.writeText(code.querySelector("code").textContent).then(() => { copy.textContent = "copied"; }));
			code.append(copy);
		}

		const input = at("search"), found = at("found");
		let loading, chosen = -1;
		const load = () => loading ??= new Promise((done) => {
			const script = document.createElement("script");
			script.src = up + "search.js";
			script.onload = done;
			document.head.append(script);
		});
		const score = (e, words) => {
			const page = e.p.toLowerCase(), head = e.h.toLowerCase(), text = e.t.toLowerCase();
			let sum = 0;
			for (const w of words) {
				const n = (head === w ? 30 : 0) + (head.includes(w) ? 20 : 0) + (page.includes(w) ? 6 : 0) + (text.includes(w) ? 1 + Math.min(text.split(w).length - 1, 5) : 0);
				if (n === 0) return 0;
				sum += n;
			}
			return sum;
		};
		const show = async () => {
			const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
			found.hidden = words.length === 0;
			if (found.hidden) return;
			await load();
			const list = searchIndex.map((e) => [score(e, words), e]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]).slice(0, 12);
			found.replaceChildren(...list.map(([, e]) => {
				const item = document.createElement("li"), a = document.createElement("a"), b = document.createElement("b"), text = document.createElement("span");
				a.href = up + e.u;
				b.textContent = e.h;
				const where = Math.max(0, e.t.toLowerCase().indexOf(words[0]) - 30);
				text.textContent = e.p + ": " + e.t.slice(where, where + 160);
				a.append(b, text);
				item.append(a);
				return item;
			}));
			if (list.length === 0) {
				const none = document.createElement("p");
				none.textContent = "Nothing found.";
				found.append(none);
			}
			choose(0);
		};
		const choose = (n) => {
			const links = found.querySelectorAll("a");
			links.forEach((a, i) => a.classList.toggle("here", i === n));
			chosen = links.length > 0 ? Math.max(0, Math.min(n, links.length - 1)) : -1;
			links[chosen]?.scrollIntoView({ block: "nearest" });
			links.forEach((a, i) => a.classList.toggle("here", i === chosen));
		};
		input.addEventListener("input", show);
		input.addEventListener("focus", load);
		input.addEventListener("keydown", (e) => {
			if (e.key === "ArrowDown") { choose(chosen + 1); e.preventDefault(); }
			if (e.key === "ArrowUp") { choose(chosen - 1); e.preventDefault(); }
			if (e.key === "Enter") found.querySelectorAll("a")[chosen]?.click();
			if (e.key === "Escape") { input.value = ""; show(); input.blur(); }
		});
		document.addEventListener("keydown", (e) => {
			if (e.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) { input.focus(); e.preventDefault(); }
		});
		document.addEventListener("click", (e) => { if (!e.target.closest(".find")) found.hidden = true; });
		const query = new URLSearchParams(location.search).get("q");
		if (query) { input.value = query; show(); }
	});
})();
