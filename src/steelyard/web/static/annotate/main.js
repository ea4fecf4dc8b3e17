import { Api } from "./api.js";
import { Embedding } from "./embedding.js";
import { Flow } from "./flow.js";
import { Frame } from "./frame.js";
import { chosenLanguage, speak } from "./messages.js";

const { api, study, language, languages, origins } = document.body.dataset;

const embedding = Embedding.of({ study, origins });
const server = new Api(api, embedding);
const welcome = server.me(); // Under way while the words load.
welcome.catch(() => {}); // What goes wrong is dealt with when it is waited for.
await speak(chosenLanguage(language));
await new Flow({ api: server, embedding, study, frame: new Frame(), languages: JSON.parse(languages) }).begin(welcome);
