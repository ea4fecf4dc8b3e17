import { Refused } from "../api.js";

/** The list of studies: times in the reader's own form, and drafts that can be deleted. */

for (const time of document.querySelectorAll("time[datetime]")) {
  time.textContent = new Date(time.dateTime).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

for (const entry of document.querySelectorAll("[data-draft]")) {
  entry.querySelector("[data-delete]").addEventListener("click", async () => {
    const title = entry.querySelector("h3").textContent;
    if (!confirm(`Delete the draft “${title}” with its files?`)) return;
    const response = await fetch(`${document.body.dataset.root}/api/v1/manage/drafts/${entry.dataset.draft}`, { method: "DELETE", headers: { "X-CSRF-Token": document.body.dataset.csrf, "Content-Type": "application/json" } }).catch(() => null);
    if (!response?.ok) {
      const refused = new Refused(response?.status ?? 0, (await response?.json().catch(() => null)) ?? { error: { what: "The server cannot be reached." } });
      document.getElementById("toast").textContent = refused.message;
      document.getElementById("toast").hidden = false;
      return;
    }
    location.reload();
  });
}
