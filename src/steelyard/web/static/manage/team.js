import { h } from "../annotate/dom.js";
import { post, read, toast } from "./api.js";
import { when } from "./cells.js";

/** The team of a study: add a person, copy their link, remove them. */

const url = `${document.body.dataset.api}/team`;
const part = (id) => document.getElementById(id);
const ROLES = { viewer: "can view", manager: "can manage" };

function show({ members }) {
  const rows = members.map((member) =>
    h(
      "li",
      { class: "card m-member" },
      h("div", {}, h("strong", { dir: "auto" }, member.name), h("p", { class: "small muted" }, ROLES[member.role], " · added ", when(member.added))),
      h("button", { type: "button", "aria-label": `Remove ${member.name}`, onclick: () => remove(member.name) }, "Remove"),
    ),
  );
  part("members").replaceChildren(rows.length ? h("ul", { class: "m-members" }, rows) : h("p", { class: "muted" }, "Nobody yet, apart from the owner of this server."));
}

async function remove(name) {
  if (!confirm(`Remove ${name} from the team? Their link stops working at once.`)) return;
  try {
    show(await post(`${url}/remove`, { name }));
    toast(`${name} no longer has access.`);
  } catch (refused) {
    toast(refused.message);
  }
}

part("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const input = part("name");
  const role = document.querySelector("input[name=role]:checked").value;
  part("name-error").textContent = "";
  try {
    const created = await post(url, { name: input.value, role });
    part("created-title").textContent = `Link for ${created.name}, who ${ROLES[created.role]}`;
    part("link").textContent = new URL(created.link, location.href).href;
    part("created").hidden = false;
    part("created-title").focus();
    input.value = "";
    show(await read(url));
  } catch (refused) {
    part("name-error").textContent = refused.message;
    input.focus();
  }
});

part("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(part("link").textContent).then(
    () => toast("Copied."),
    () => toast("The browser did not allow copying. Select the link and copy it yourself."),
  );
});

try {
  show(await read(url));
} catch (refused) {
  part("members").replaceChildren(h("p", { class: "m-notice", role: "alert" }, refused.message));
}
