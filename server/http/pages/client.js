// @ts-nocheck
/*!
Made from client/client.ts by `npm run page-client`: change that instead. It contains:

superjson 2.2.6

MIT License

Copyright (c) 2020 Simon Knott and superjson contributors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.


copy-anything 4.1.5

MIT License

Copyright (c) 2018 Luca Ban - Mesqueeb

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
*/
// client/call.ts
var isSignIn$1 = ({ path }) => path === "auth.authenticate";
// client/errors.ts
/** The error of a failed call, unless its signal aborted it. The message tells people what to do. */
var DeckhandError = class extends Error {
	/** Always `DeckhandError`. */
	name = "DeckhandError";
	/** The HTTP status; undefined if no answer came. */
	status;
	/** Why the service refused, for programs; undefined if no answer came, or not from the service. */
	reason;
	/** The messages of a 422 by field: `{ title: ['title is required.'] }`; otherwise empty. */
	fields;
	/** Seconds until a retry, if the service said so. */
	retryAfterSeconds;
	/** The id of the last request, as in the log of the service, even if no answer came; undefined if nothing was sent. */
	requestId;
	/** The key of a mutation: the same call with this `idempotencyKey` is not executed a second time. */
	idempotencyKey;
	/** The error data from the service; undefined if no answer came, or not from the service. */
	data;
	constructor(message, { response, data, call, cause } = {}) {
		super(message, cause === void 0 ? {} : { cause });
		this.status = data?.httpStatus ?? response?.status;
		this.reason = data?.reason;
		this.fields = data?.errors ?? {};
		this.retryAfterSeconds = data?.retryAfterSeconds ?? retryAfterSecondsOf(response);
		this.requestId = response?.headers.get("x-request-id") ?? call?.requestId;
		this.idempotencyKey = call?.idempotencyKey;
		this.data = data;
	}
};
/** Whether the service answered with an error: see `error.status`, `error.reason` and, for a 422, `error.fields`. */
function isRefusal(error) {
	return error instanceof DeckhandError && error.status !== void 0;
}
/** Converts what sending a request threw into a `DeckhandError`. */
function errorOf(thrown, call = {}) {
	if (thrown instanceof DeckhandError) return thrown;
	if (thrown instanceof ForeignAnswer) return notFromService(thrown.response, call, thrown.cause);
	call.wasSent ||= !hadNoConnection(thrown);
	return new DeckhandError(`No answer came (${reasonOf(thrown)}). Check the url, and that the service runs.${warningFor(call)}`, {
		call,
		cause: thrown
	});
}
/** For a call that took too long. */
function timeOutOf(milliseconds, call) {
	return new DeckhandError(`No answer came within ${milliseconds} ms.${warningFor({
		...call,
		wasSent: call.requestId !== void 0
	})}`, { call });
}
/** For an error thrown by one of the caller's own functions. */
function errorOfOwn(name, thrown) {
	return new DeckhandError(`${name} threw an error: ${reasonOf(thrown)}`, { cause: thrown });
}
/** A copy with the stack of the line that made the call. Several calls of a batch can fail with one error. */
function thrownAt({ stack = "" }, error) {
	const copy = Object.assign(new DeckhandError(error.message, { cause: error.cause }), error);
	const lines = stack.split("\n").filter((line) => /^\s*at |@/.test(line));
	return Object.assign(copy, { stack: [`${error.name}: ${error.message}`, ...lines].join("\n") });
}
/** Reads the JSON of an answer. Throws unless it can be from the service: a proxy without its service sends an error page. */
async function readAnswer(response) {
	if (!response.headers.get("content-type")?.includes("json")) throw new ForeignAnswer(response);
	return response.json().catch((error) => {
		throw error.name === "SyntaxError" ? new ForeignAnswer(response, error) : error;
	});
}
var ForeignAnswer = class extends Error {
	response;
	constructor(response, cause) {
		super("The answer is not from Deckhand.", { cause });
		this.response = response;
	}
};
function notFromService(response, call, cause) {
	call.wasSent = true;
	const warning = response.status >= 500 ? warningFor(call) : "";
	return new DeckhandError(`The answer with status ${response.status} is not from Deckhand. Check the url (without /api), and any proxy in between.${warning}`, {
		response,
		call,
		cause
	});
}
/** Only mutations have a key. */
function warningFor({ idempotencyKey, wasSent }) {
	if (idempotencyKey === void 0 || !wasSent) return "";
	return " The call may have been executed: repeat it with the error's idempotencyKey to get its answer.";
}
/** Whether there was no connection on which to send the request. */
function hadNoConnection(thrown) {
	for (let error = thrown; error instanceof Error; error = error.cause) if ([
		"ECONNREFUSED",
		"ENOTFOUND",
		"EAI_AGAIN"
	].includes(error.code ?? "")) return true;
	return false;
}
/** Node hides why a request failed behind "fetch failed". */
function reasonOf(thrown) {
	const causes = [];
	for (let error = thrown; error instanceof Error; error = error.cause) {
		const message = error.message.trim().replaceAll(/\s+/g, " ");
		if (message && !causes.includes(message)) causes.push(message);
	}
	return causes.join(": ") || "the request failed";
}
/** The header is a number of seconds or a date. */
function retryAfterSecondsOf(response) {
	const header = response?.headers.get("retry-after");
	if (!header) return void 0;
	const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1e3);
	return Number.isNaN(seconds) ? void 0 : Math.max(0, seconds);
}
// client/idempotencyKey.ts
/** A new name for a call or a request. `crypto.randomUUID` is missing in browsers on pages without HTTPS. */
function newName() {
	const bytes = crypto.getRandomValues(/* @__PURE__ */ new Uint8Array(16));
	return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** The header with the keys of a batch of mutations; none for queries. */
function keyHeader(calls) {
	const keys = calls.map(({ idempotencyKey }) => idempotencyKey);
	return keys.some((key) => key !== void 0) ? { "idempotency-key": keys.join() } : {};
}
/** Throws for a key that the service would not accept: it would refuse the other calls of the batch, too. */
function validKey(key) {
	if (/^[\x21-\x2b\x2d-\x7e]([\x20-\x2b\x2d-\x7e]{0,253}[\x21-\x2b\x2d-\x7e])?$/.test(key)) return key;
	throw new DeckhandError("idempotencyKey must have 1 to 255 printable ASCII characters without commas.");
}
// client/input.ts
/**
* Writes an input as plain JSON; a `Date` becomes text. Throws for a value that would be sent as another one: an invalid `Date`
* is null in JSON, and null clears a field.
*/
function writeInput(input) {
	let fields = 0;
	const places = /* @__PURE__ */ new Map();
	function check(key, value) {
		fields++;
		const parent = places.get(this);
		const place = parent ? `${parent}.${key}` : key;
		const changed = changedByJson(this[key], value);
		if (changed) throw new DeckhandError(`${place || "The input"} can't be sent: it is ${changed}.`);
		if (typeof value === "object") places.set(value, place);
		return value;
	}
	const json = toJson(input, check);
	const text = json === void 0 ? "{}" : `{"json":${json}}`;
	return {
		text,
		bytes: new TextEncoder().encode(text).length,
		fields
	};
}
function toJson(input, check) {
	try {
		return JSON.stringify(input, check);
	} catch (error) {
		if (error instanceof DeckhandError) throw error;
		throw new DeckhandError(`The input can't be sent as JSON: ${error.message}`, { cause: error });
	}
}
/** What a value is that JSON has no place for; `value` is what its `toJSON` made of it. */
function changedByJson(original, value) {
	const [, type = ""] = /^\[object (.+)\]$/.exec(Object.prototype.toString.call(original)) ?? [];
	if (value === null && original !== null) return type === "Date" ? "an invalid Date" : "null as JSON";
	if (typeof value === "number" && !Number.isFinite(value)) return String(value);
	return EMPTY_IN_JSON.has(type) && value === original ? `a ${type}` : void 0;
}
var EMPTY_IN_JSON = /* @__PURE__ */ new Set([
	"Map",
	"Set",
	"Promise",
	"RegExp"
]);
// client/retry.ts
/**
* A call that got a 429 was not executed. After other failures that is unknown: a query may be executed twice, and a mutation
* with an idempotency key will not be. An error before the request, as of a `token` function, is left to the caller.
*/
function isSafeToRepeat({ kind, idempotencyKey }, error) {
	const { status, requestId } = error;
	if (isTooLong(error)) return false;
	if (status === 429) return true;
	return (status === void 0 ? requestId !== void 0 : PASSING_STATUSES.has(status)) && (kind === "query" || idempotencyKey !== void 0);
}
/** Whether the call has to wait for the next window of the rate limit. */
var isOverLimit = (error) => error.reason === "over_rate_limit" && !isTooLong(error);
/** The statuses of a proxy while the service is down. */
var PASSING_STATUSES = /* @__PURE__ */ new Set([
	502,
	503,
	504
]);
var FIRST_WAIT_SECONDS = .25;
/** The rate limit window is a minute; a longer wait is left to the caller. */
var LONGEST_WAIT_SECONDS = 60;
var isTooLong = ({ retryAfterSeconds = 0 }) => retryAfterSeconds > LONGEST_WAIT_SECONDS;
/** Exponential backoff with jitter, so that many clients do not retry at the same time; never before Retry-After. */
function millisecondsBefore(retry, errors) {
	const backOffSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** retry, LONGEST_WAIT_SECONDS) * (1 - Math.random() / 2);
	return (Math.max(...errors.map((error) => error.retryAfterSeconds ?? 0)) + backOffSeconds) * 1e3;
}
// client/pace.ts
var WINDOW_MILLISECONDS = 6e4;
function makePace(onNextWindow) {
	let limit = Number.POSITIVE_INFINITY;
	let left = limit;
	let isResting = false;
	let isProbing = false;
	let timer;
	function wake() {
		clearTimeout(timer);
		timer = void 0;
		isResting = false;
	}
	function nextWindow() {
		wake();
		left = limit;
		isProbing = false;
		onNextWindow();
	}
	return {
		wake,
		allowed: () => {
			if (isResting) return 0;
			if (left > 0) return left;
			if (!isProbing) return 1;
			timer ??= setTimeout(nextWindow, WINDOW_MILLISECONDS);
			return 0;
		},
		spend: (calls) => {
			isProbing ||= left <= 0;
			left -= calls;
		},
		hear: (quota, othersInFlight) => {
			isProbing = false;
			if (!quota) return;
			limit = quota.limit;
			left = quota.remaining - othersInFlight;
		},
		rest: (errors) => {
			if (isResting) return;
			wake();
			isResting = true;
			timer = setTimeout(nextWindow, millisecondsBefore(0, errors));
		}
	};
}
// client/timeOut.ts
/** Without a time-out of the caller. A mutation may be a sync or a push, which copies to thousands of projects. */
var DEFAULT_MILLISECONDS = {
	query: 6e4,
	mutation: 3e5
};
/**
* Runs a call with a signal of its own, which the caller's signal and the time-out abort. So no listeners stay on the caller's
* signal, which may be used for many calls.
*/
async function withTimeOut({ signal, timeoutMilliseconds }, begun, work) {
	const isDefault = timeoutMilliseconds === void 0;
	const milliseconds = isDefault ? DEFAULT_MILLISECONDS[begun.kind] : validTimeOut(timeoutMilliseconds);
	const controller = new AbortController();
	const { run, rest } = makeStopwatch(milliseconds, controller.signal, () => controller.abort(timeOutOf(milliseconds, call)));
	const stopwatch = {
		run,
		rest,
		wait: isDefault ? rest : run
	};
	const call = {
		...begun,
		signal: controller.signal,
		stopwatch
	};
	const end = () => controller.abort(signal?.reason);
	signal?.addEventListener("abort", end, { once: true });
	try {
		stopwatch.wait();
		return await untilAborted(work(call), controller.signal);
	} finally {
		rest();
		signal?.removeEventListener("abort", end);
	}
}
function makeStopwatch(milliseconds, signal, onEnd) {
	let left = milliseconds;
	let running;
	return {
		run: () => {
			if (signal.aborted) return;
			running ??= {
				since: performance.now(),
				timer: setTimeout(onEnd, left)
			};
		},
		rest: () => {
			if (!running) return;
			clearTimeout(running.timer);
			left = Math.max(0, left - (performance.now() - running.since));
			running = void 0;
		}
	};
}
/** The longest time that a timer accepts, 24 days: after a longer one it would fire at once. */
var LONGEST_TIMEOUT = 2 ** 31 - 1;
var TIME_OUTS = `from 1 to ${LONGEST_TIMEOUT}`;
var isTimeOut = (value) => typeof value === "number" && value > 0 && value <= LONGEST_TIMEOUT;
function validTimeOut(milliseconds) {
	if (isTimeOut(milliseconds)) return milliseconds;
	throw new DeckhandError(`timeoutMilliseconds must be ${TIME_OUTS}.`);
}
async function pause(milliseconds, signal) {
	let timer;
	const passed = new Promise((resolve) => {
		timer = setTimeout(resolve, milliseconds);
	});
	try {
		await untilAborted(passed, signal);
	} finally {
		clearTimeout(timer);
	}
}
function untilAborted(work, signal) {
	return new Promise((resolve, reject) => {
		const stop = () => reject(signal.reason);
		if (signal.aborted) stop();
		signal.addEventListener("abort", stop, { once: true });
		work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
	});
}
// client/line.ts
/** Where calls wait for their turn. They are sent in batches, and what failed and is safe to repeat is sent again. */
function makeLine({ largestBatch, maxInFlight, retries, send }) {
	const lanes = /* @__PURE__ */ new Map();
	const pace = makePace(sendSoon);
	let inFlight = 0;
	let wanted = 0;
	let isScheduled = false;
	return (call) => new Promise((resolve, reject) => {
		call.signal.throwIfAborted();
		const waiting = {
			call,
			resolve,
			reject
		};
		const lane = lanes.get(laneOf(call)) ?? [];
		lane.push(waiting);
		lanes.set(laneOf(call), lane);
		enter(waiting);
		sendSoon();
	});
	function enter({ call }) {
		call.stopwatch.rest();
		call.signal.addEventListener("abort", giveUp);
		wanted++;
	}
	function leave({ call }) {
		call.signal.removeEventListener("abort", giveUp);
		call.stopwatch.run();
		giveUp();
	}
	/** Without a waiting call, no timer keeps the process alive. */
	function giveUp() {
		wanted--;
		if (wanted > 0) return;
		lanes.clear();
		pace.wake();
	}
	/** In the next turn of the event loop, so that calls made at once are sent together. */
	function sendSoon() {
		if (isScheduled || lanes.size === 0) return;
		isScheduled = true;
		setTimeout(sendWaiting);
	}
	function sendWaiting() {
		isScheduled = false;
		for (;;) {
			const [next] = lanes;
			if (!next) return;
			const allowed = retries > 0 ? pace.allowed() : Number.POSITIVE_INFINITY;
			const most = Math.min(largestBatch, maxInFlight - inFlight, allowed);
			if (most < 1) return;
			const [key, lane] = next;
			const batch = takeBatch(lane, most).filter(isWanted);
			lanes.delete(key);
			if (lane.length > 0) lanes.set(key, lane);
			batch.forEach(leave);
			sendUntilSettled(batch);
		}
	}
	/** Never rejects. A batch keeps its place in flight while it waits for its retry: the service is in trouble. */
	async function sendUntilSettled(batch) {
		inFlight += batch.length;
		for (let retry = 0; batch.length > 0; retry++) {
			const failed = await attempt(batch);
			const putBack = failed.filter((each) => retries > 0 && isPutOff(each, batch.length));
			const again = failed.filter((each) => !putBack.includes(each) && retry < retries && isRepeatable(each));
			for (const each of failed) if (!putBack.includes(each) && !again.includes(each)) each.waiting.reject(each.error);
			returnToLine(putBack);
			release(batch.length - again.length);
			if (again.length === 0) return;
			await pauseBefore(retry, again);
			batch = again.map((each) => each.waiting).filter(isWanted);
			release(again.length - batch.length);
		}
	}
	/** Settles the calls that succeeded, and returns the others. */
	async function attempt(batch) {
		pace.spend(batch.length);
		const calls = batch.map(({ call }) => call);
		const { outcomes, quota } = await whileWanted(batch, (signal) => send(calls, signal)).catch(() => ({ outcomes: [] }));
		pace.hear(quota, inFlight - batch.length);
		return outcomes.flatMap((outcome, index) => {
			const waiting = batch[index];
			if ("error" in outcome) return {
				waiting,
				error: outcome.error
			};
			waiting.resolve(outcome.result);
			return [];
		});
	}
	/** To the front of their lane. */
	function returnToLine(failed) {
		if (failed.length === 0) return;
		const waiting = failed.map((each) => each.waiting);
		waiting.forEach(enter);
		const key = laneOf(waiting[0].call);
		lanes.set(key, [...waiting, ...lanes.get(key) ?? []]);
		const errors = failed.map(({ error }) => error).filter(isOverLimit);
		if (errors.length > 0) pace.rest(errors);
	}
	function release(calls) {
		inFlight -= calls;
		sendSoon();
	}
}
/** Calls that can share a request: it names at most one project, and has queries or mutations. */
var laneOf = ({ kind, projectId }) => `${kind} ${projectId}`;
/** Takes calls from the front that fit into one request; one that is too large is taken alone, and refused by the service. */
function takeBatch(lane, most) {
	let [taken, bytes, fields] = [
		0,
		2,
		0
	];
	for (const { call } of lane) {
		bytes += call.input.bytes + ENVELOPE_BYTES;
		fields += call.input.fields + ENVELOPE_FIELDS;
		if (taken === most || taken > 0 && (bytes > 1048576 || fields > 3e4)) break;
		taken++;
	}
	return lane.splice(0, taken);
}
/** `"49":` before the input of a call, and a comma behind it. */
var ENVELOPE_BYTES = 6;
var ENVELOPE_FIELDS = 1;
var isWanted = ({ call }) => !call.signal.aborted;
var isRepeatable = ({ waiting, error }) => isWanted(waiting) && isSafeToRepeat(waiting.call, error);
/** Refusals that say nothing against the call: it goes back to its place in the line, and that is not a retry. */
var isPutOff = ({ waiting, error }, calls) => isWanted(waiting) && (isOverLimit(error) || error.reason === "batch_answers_too_large" && calls > 1);
/** One wait for all calls of a failed batch, so that they are sent together again. */
async function pauseBefore(retry, failed) {
	const waiting = failed.map((each) => each.waiting);
	const errors = failed.map(({ error }) => error);
	for (const { call } of waiting) call.stopwatch.wait();
	await whileWanted(waiting, (signal) => pause(millisecondsBefore(retry, errors), signal)).catch(() => void 0);
	for (const { call } of waiting) call.stopwatch.run();
}
/** Work for calls that is aborted when all of them are. */
async function whileWanted(waiting, work) {
	const controller = new AbortController();
	const check = () => {
		if (!waiting.some(isWanted)) controller.abort();
	};
	for (const { call } of waiting) call.signal.addEventListener("abort", check);
	try {
		return await untilAborted(work(controller.signal), controller.signal);
	} finally {
		for (const { call } of waiting) call.signal.removeEventListener("abort", check);
	}
}
// client/options.ts
/** Throws for a missing or wrong option: JavaScript has no compiler that does. */
function mustBeValid(options) {
	const given = Object(options);
	for (const [name, [isValid, rule]] of Object.entries(RULES)) if (!(given[name] === void 0 && name !== "url") && !isValid(given[name])) throw new DeckhandError(`${name} must be ${rule}.`);
}
var isText = (value) => typeof value === "string";
var isFunction = (value) => typeof value === "function";
var isAddress = (value) => isText(value) && /^https?:/.test(value) && URL.canParse(value);
function isSignIn(value) {
	const { email, password, code } = Object(value);
	return isText(email) && isText(password) && (code === void 0 || isText(code) || isFunction(code));
}
var wholeNumberFrom = (least) => [(value) => Number.isSafeInteger(value) && value >= least, `a whole number from ${least} on`];
var RULES = {
	url: [isAddress, "the address of the service, such as http://127.0.0.1:3000"],
	token: [(value) => isText(value) || isFunction(value), "text or a function"],
	signIn: [isSignIn, "an object with email and password, and perhaps a code"],
	onSignIn: [isFunction, "a function"],
	projectId: wholeNumberFrom(1),
	timeoutMilliseconds: [isTimeOut, TIME_OUTS],
	retries: wholeNumberFrom(0),
	maxInFlight: wholeNumberFrom(1),
	traceparent: [isFunction, "a function"],
	fetch: [isFunction, "a function"]
};
// client/proxy.ts
/** A client whose calls have these defaults. */
function withDefaults(defaults, send) {
	const as = (changed) => withDefaults(merged(defaults, changed), send);
	const sendMerged = (call) => send({
		...call,
		options: {
			...call.options,
			...merged(defaults, call.options)
		}
	});
	return procedureAt([], sendMerged, { as });
}
/** A field that is undefined does not replace a default. */
function merged(defaults, changed) {
	return {
		projectId: changed.projectId ?? defaults.projectId,
		timeoutMilliseconds: changed.timeoutMilliseconds ?? defaults.timeoutMilliseconds
	};
}
/** `client.cards.create.mutate(input)` sends `cards.create`: each property access adds a part to the path. */
function procedureAt(path, send, members = {}) {
	const call = (input, options = {}) => {
		const [procedure, method] = [path.slice(0, -1).join("."), path.at(-1)];
		const caller = /* @__PURE__ */ new Error("The line that made the call.");
		Error.captureStackTrace?.(caller, call);
		const parts = {
			path: procedure,
			options,
			caller
		};
		if (!METHODS.has(method)) throw thrownAt(caller, new DeckhandError(wrongMethod(path)));
		if (method === "each") return eachRow((page) => send({
			...parts,
			kind: "query",
			input: page
		}), input);
		return send({
			...parts,
			kind: method === "query" ? "query" : "mutation",
			input
		});
	};
	return new Proxy(call, { get: (_, name) => {
		if (name === Symbol.toPrimitive) return () => ["client", ...path].join(".");
		if (typeof name === "symbol" || NO_PARTS.has(name)) return void 0;
		return Object.hasOwn(members, name) ? members[name] : procedureAt([...path, name], send);
	} });
}
var METHODS = /* @__PURE__ */ new Set([
	"query",
	"mutate",
	"each"
]);
/** For JavaScript, where `client.cards.create(…)` is no compile error. */
var wrongMethod = (path) => `${["client", ...path].join(".")} can't be called: a procedure has query or each if it reads, mutate if it changes something.`;
/** Properties that JavaScript reads when a value is awaited or printed; they are not procedures. */
var NO_PARTS = /* @__PURE__ */ new Set([
	"then",
	"toJSON",
	"toString",
	"valueOf"
]);
async function* eachRow(list, input = {}) {
	let page = {};
	do {
		page = await list(page.next_cursor ? {
			...input,
			cursor: page.next_cursor
		} : input);
		yield* Object.values(page).find(Array.isArray) ?? [];
	} while (page.next_cursor);
}
// node_modules/superjson/dist/double-indexed-kv.js
var DoubleIndexedKV = class {
	constructor() {
		this.keyToValue = /* @__PURE__ */ new Map();
		this.valueToKey = /* @__PURE__ */ new Map();
	}
	set(key, value) {
		this.keyToValue.set(key, value);
		this.valueToKey.set(value, key);
	}
	getByKey(key) {
		return this.keyToValue.get(key);
	}
	getByValue(value) {
		return this.valueToKey.get(value);
	}
	clear() {
		this.keyToValue.clear();
		this.valueToKey.clear();
	}
};
// node_modules/superjson/dist/registry.js
var Registry = class {
	constructor(generateIdentifier) {
		this.generateIdentifier = generateIdentifier;
		this.kv = new DoubleIndexedKV();
	}
	register(value, identifier) {
		if (this.kv.getByValue(value)) return;
		if (!identifier) identifier = this.generateIdentifier(value);
		this.kv.set(identifier, value);
	}
	clear() {
		this.kv.clear();
	}
	getIdentifier(value) {
		return this.kv.getByValue(value);
	}
	getValue(identifier) {
		return this.kv.getByKey(identifier);
	}
};
// node_modules/superjson/dist/class-registry.js
var ClassRegistry = class extends Registry {
	constructor() {
		super((c) => c.name);
		this.classToAllowedProps = /* @__PURE__ */ new Map();
	}
	register(value, options) {
		if (typeof options === "object") {
			if (options.allowProps) this.classToAllowedProps.set(value, options.allowProps);
			super.register(value, options.identifier);
		} else super.register(value, options);
	}
	getAllowedProps(value) {
		return this.classToAllowedProps.get(value);
	}
};
// node_modules/superjson/dist/util.js
function valuesOfObj(record) {
	if ("values" in Object) return Object.values(record);
	const values = [];
	for (const key in record) if (record.hasOwnProperty(key)) values.push(record[key]);
	return values;
}
function find(record, predicate) {
	const values = valuesOfObj(record);
	if ("find" in values) return values.find(predicate);
	const valuesNotNever = values;
	for (let i = 0; i < valuesNotNever.length; i++) {
		const value = valuesNotNever[i];
		if (predicate(value)) return value;
	}
}
function forEach(record, run) {
	Object.entries(record).forEach(([key, value]) => run(value, key));
}
function includes(arr, value) {
	return arr.indexOf(value) !== -1;
}
function findArr(record, predicate) {
	for (let i = 0; i < record.length; i++) {
		const value = record[i];
		if (predicate(value)) return value;
	}
}
// node_modules/superjson/dist/custom-transformer-registry.js
var CustomTransformerRegistry = class {
	constructor() {
		this.transfomers = {};
	}
	register(transformer) {
		this.transfomers[transformer.name] = transformer;
	}
	findApplicable(v) {
		return find(this.transfomers, (transformer) => transformer.isApplicable(v));
	}
	findByName(name) {
		return this.transfomers[name];
	}
};
// node_modules/superjson/dist/is.js
var getType = (payload) => Object.prototype.toString.call(payload).slice(8, -1);
var isUndefined = (payload) => typeof payload === "undefined";
var isNull = (payload) => payload === null;
var isPlainObject$1 = (payload) => {
	if (typeof payload !== "object" || payload === null) return false;
	if (payload === Object.prototype) return false;
	if (Object.getPrototypeOf(payload) === null) return true;
	return Object.getPrototypeOf(payload) === Object.prototype;
};
var isEmptyObject = (payload) => isPlainObject$1(payload) && Object.keys(payload).length === 0;
var isArray = (payload) => Array.isArray(payload);
var isString = (payload) => typeof payload === "string";
var isNumber = (payload) => typeof payload === "number" && !isNaN(payload);
var isBoolean = (payload) => typeof payload === "boolean";
var isRegExp = (payload) => payload instanceof RegExp;
var isMap = (payload) => payload instanceof Map;
var isSet = (payload) => payload instanceof Set;
var isSymbol = (payload) => getType(payload) === "Symbol";
var isDate = (payload) => payload instanceof Date && !isNaN(payload.valueOf());
var isError = (payload) => payload instanceof Error;
var isNaNValue = (payload) => typeof payload === "number" && isNaN(payload);
var isPrimitive = (payload) => isBoolean(payload) || isNull(payload) || isUndefined(payload) || isNumber(payload) || isString(payload) || isSymbol(payload);
var isBigint = (payload) => typeof payload === "bigint";
var isInfinite = (payload) => payload === Infinity || payload === -Infinity;
var isTypedArray = (payload) => ArrayBuffer.isView(payload) && !(payload instanceof DataView);
var isURL = (payload) => payload instanceof URL;
// node_modules/superjson/dist/pathstringifier.js
var escapeKey = (key) => key.replace(/\\/g, "\\\\").replace(/\./g, "\\.");
var stringifyPath = (path) => path.map(String).map(escapeKey).join(".");
var parsePath = (string, legacyPaths) => {
	const result = [];
	let segment = "";
	for (let i = 0; i < string.length; i++) {
		let char = string.charAt(i);
		if (!legacyPaths && char === "\\") {
			const escaped = string.charAt(i + 1);
			if (escaped === "\\") {
				segment += "\\";
				i++;
				continue;
			} else if (escaped !== ".") throw Error("invalid path");
		}
		if (char === "\\" && string.charAt(i + 1) === ".") {
			segment += ".";
			i++;
			continue;
		}
		if (char === ".") {
			result.push(segment);
			segment = "";
			continue;
		}
		segment += char;
	}
	const lastSegment = segment;
	result.push(lastSegment);
	return result;
};
// node_modules/superjson/dist/transformer.js
function simpleTransformation(isApplicable, annotation, transform, untransform) {
	return {
		isApplicable,
		annotation,
		transform,
		untransform
	};
}
var simpleRules = [
	simpleTransformation(isUndefined, "undefined", () => null, () => void 0),
	simpleTransformation(isBigint, "bigint", (v) => v.toString(), (v) => {
		if (typeof BigInt !== "undefined") return BigInt(v);
		console.error("Please add a BigInt polyfill.");
		return v;
	}),
	simpleTransformation(isDate, "Date", (v) => v.toISOString(), (v) => new Date(v)),
	simpleTransformation(isError, "Error", (v, superJson) => {
		const baseError = {
			name: v.name,
			message: v.message
		};
		if ("cause" in v) baseError.cause = v.cause;
		superJson.allowedErrorProps.forEach((prop) => {
			baseError[prop] = v[prop];
		});
		return baseError;
	}, (v, superJson) => {
		const e = new Error(v.message, { cause: v.cause });
		e.name = v.name;
		e.stack = v.stack;
		superJson.allowedErrorProps.forEach((prop) => {
			e[prop] = v[prop];
		});
		return e;
	}),
	simpleTransformation(isRegExp, "regexp", (v) => "" + v, (regex) => {
		const body = regex.slice(1, regex.lastIndexOf("/"));
		const flags = regex.slice(regex.lastIndexOf("/") + 1);
		return new RegExp(body, flags);
	}),
	simpleTransformation(isSet, "set", (v) => [...v.values()], (v) => new Set(v)),
	simpleTransformation(isMap, "map", (v) => [...v.entries()], (v) => new Map(v)),
	simpleTransformation((v) => isNaNValue(v) || isInfinite(v), "number", (v) => {
		if (isNaNValue(v)) return "NaN";
		if (v > 0) return "Infinity";
		else return "-Infinity";
	}, Number),
	simpleTransformation((v) => v === 0 && 1 / v === -Infinity, "number", () => {
		return "-0";
	}, Number),
	simpleTransformation(isURL, "URL", (v) => v.toString(), (v) => new URL(v))
];
function compositeTransformation(isApplicable, annotation, transform, untransform) {
	return {
		isApplicable,
		annotation,
		transform,
		untransform
	};
}
var symbolRule = compositeTransformation((s, superJson) => {
	if (isSymbol(s)) return !!superJson.symbolRegistry.getIdentifier(s);
	return false;
}, (s, superJson) => {
	return ["symbol", superJson.symbolRegistry.getIdentifier(s)];
}, (v) => v.description, (_, a, superJson) => {
	const value = superJson.symbolRegistry.getValue(a[1]);
	if (!value) throw new Error("Trying to deserialize unknown symbol");
	return value;
});
var constructorToName = [
	Int8Array,
	Uint8Array,
	Int16Array,
	Uint16Array,
	Int32Array,
	Uint32Array,
	Float32Array,
	Float64Array,
	Uint8ClampedArray
].reduce((obj, ctor) => {
	obj[ctor.name] = ctor;
	return obj;
}, {});
var typedArrayRule = compositeTransformation(isTypedArray, (v) => ["typed-array", v.constructor.name], (v) => [...v], (v, a) => {
	const ctor = constructorToName[a[1]];
	if (!ctor) throw new Error("Trying to deserialize unknown typed array");
	return new ctor(v);
});
function isInstanceOfRegisteredClass(potentialClass, superJson) {
	if (potentialClass?.constructor) return !!superJson.classRegistry.getIdentifier(potentialClass.constructor);
	return false;
}
var classRule = compositeTransformation(isInstanceOfRegisteredClass, (clazz, superJson) => {
	return ["class", superJson.classRegistry.getIdentifier(clazz.constructor)];
}, (clazz, superJson) => {
	const allowedProps = superJson.classRegistry.getAllowedProps(clazz.constructor);
	if (!allowedProps) return { ...clazz };
	const result = {};
	allowedProps.forEach((prop) => {
		result[prop] = clazz[prop];
	});
	return result;
}, (v, a, superJson) => {
	const clazz = superJson.classRegistry.getValue(a[1]);
	if (!clazz) throw new Error(`Trying to deserialize unknown class '${a[1]}' - check https://github.com/blitz-js/superjson/issues/116#issuecomment-773996564`);
	return Object.assign(Object.create(clazz.prototype), v);
});
var customRule = compositeTransformation((value, superJson) => {
	return !!superJson.customTransformerRegistry.findApplicable(value);
}, (value, superJson) => {
	return ["custom", superJson.customTransformerRegistry.findApplicable(value).name];
}, (value, superJson) => {
	return superJson.customTransformerRegistry.findApplicable(value).serialize(value);
}, (v, a, superJson) => {
	const transformer = superJson.customTransformerRegistry.findByName(a[1]);
	if (!transformer) throw new Error("Trying to deserialize unknown custom value");
	return transformer.deserialize(v);
});
var compositeRules = [
	classRule,
	symbolRule,
	customRule,
	typedArrayRule
];
var transformValue = (value, superJson) => {
	const applicableCompositeRule = findArr(compositeRules, (rule) => rule.isApplicable(value, superJson));
	if (applicableCompositeRule) return {
		value: applicableCompositeRule.transform(value, superJson),
		type: applicableCompositeRule.annotation(value, superJson)
	};
	const applicableSimpleRule = findArr(simpleRules, (rule) => rule.isApplicable(value, superJson));
	if (applicableSimpleRule) return {
		value: applicableSimpleRule.transform(value, superJson),
		type: applicableSimpleRule.annotation
	};
};
var simpleRulesByAnnotation = {};
simpleRules.forEach((rule) => {
	simpleRulesByAnnotation[rule.annotation] = rule;
});
var untransformValue = (json, type, superJson) => {
	if (isArray(type)) switch (type[0]) {
		case "symbol": return symbolRule.untransform(json, type, superJson);
		case "class": return classRule.untransform(json, type, superJson);
		case "custom": return customRule.untransform(json, type, superJson);
		case "typed-array": return typedArrayRule.untransform(json, type, superJson);
		default: throw new Error("Unknown transformation: " + type);
	}
	else {
		const transformation = simpleRulesByAnnotation[type];
		if (!transformation) throw new Error("Unknown transformation: " + type);
		return transformation.untransform(json, superJson);
	}
};
// node_modules/superjson/dist/accessDeep.js
var getNthKey = (value, n) => {
	if (n > value.size) throw new Error("index out of bounds");
	const keys = value.keys();
	while (n > 0) {
		keys.next();
		n--;
	}
	return keys.next().value;
};
function validatePath(path) {
	if (includes(path, "__proto__")) throw new Error("__proto__ is not allowed as a property");
	if (includes(path, "prototype")) throw new Error("prototype is not allowed as a property");
	if (includes(path, "constructor")) throw new Error("constructor is not allowed as a property");
}
var getDeep = (object, path) => {
	validatePath(path);
	for (let i = 0; i < path.length; i++) {
		const key = path[i];
		if (isSet(object)) object = getNthKey(object, +key);
		else if (isMap(object)) {
			const row = +key;
			const type = +path[++i] === 0 ? "key" : "value";
			const keyOfRow = getNthKey(object, row);
			switch (type) {
				case "key":
					object = keyOfRow;
					break;
				case "value": object = object.get(keyOfRow);
			}
		} else object = object[key];
	}
	return object;
};
var setDeep = (object, path, mapper) => {
	validatePath(path);
	if (path.length === 0) return mapper(object);
	let parent = object;
	for (let i = 0; i < path.length - 1; i++) {
		const key = path[i];
		if (isArray(parent)) {
			const index = +key;
			parent = parent[index];
		} else if (isPlainObject$1(parent)) parent = parent[key];
		else if (isSet(parent)) {
			const row = +key;
			parent = getNthKey(parent, row);
		} else if (isMap(parent)) {
			if (i === path.length - 2) break;
			const row = +key;
			const type = +path[++i] === 0 ? "key" : "value";
			const keyOfRow = getNthKey(parent, row);
			switch (type) {
				case "key":
					parent = keyOfRow;
					break;
				case "value": parent = parent.get(keyOfRow);
			}
		}
	}
	const lastKey = path[path.length - 1];
	if (isArray(parent)) parent[+lastKey] = mapper(parent[+lastKey]);
	else if (isPlainObject$1(parent)) parent[lastKey] = mapper(parent[lastKey]);
	if (isSet(parent)) {
		const oldValue = getNthKey(parent, +lastKey);
		const newValue = mapper(oldValue);
		if (oldValue !== newValue) {
			parent.delete(oldValue);
			parent.add(newValue);
		}
	}
	if (isMap(parent)) {
		const row = +path[path.length - 2];
		const keyToRow = getNthKey(parent, row);
		switch (+lastKey === 0 ? "key" : "value") {
			case "key": {
				const newKey = mapper(keyToRow);
				parent.set(newKey, parent.get(keyToRow));
				if (newKey !== keyToRow) parent.delete(keyToRow);
				break;
			}
			case "value": parent.set(keyToRow, mapper(parent.get(keyToRow)));
		}
	}
	return object;
};
// node_modules/superjson/dist/plainer.js
var enableLegacyPaths = (version) => version < 1;
function traverse(tree, walker, version, origin = []) {
	if (!tree) return;
	const legacyPaths = enableLegacyPaths(version);
	if (!isArray(tree)) {
		forEach(tree, (subtree, key) => traverse(subtree, walker, version, [...origin, ...parsePath(key, legacyPaths)]));
		return;
	}
	const [nodeValue, children] = tree;
	if (children) forEach(children, (child, key) => {
		traverse(child, walker, version, [...origin, ...parsePath(key, legacyPaths)]);
	});
	walker(nodeValue, origin);
}
function applyValueAnnotations(plain, annotations, version, superJson) {
	traverse(annotations, (type, path) => {
		plain = setDeep(plain, path, (v) => untransformValue(v, type, superJson));
	}, version);
	return plain;
}
function applyReferentialEqualityAnnotations(plain, annotations, version) {
	const legacyPaths = enableLegacyPaths(version);
	function apply(identicalPaths, path) {
		const object = getDeep(plain, parsePath(path, legacyPaths));
		identicalPaths.map((path) => parsePath(path, legacyPaths)).forEach((identicalObjectPath) => {
			plain = setDeep(plain, identicalObjectPath, () => object);
		});
	}
	if (isArray(annotations)) {
		const [root, other] = annotations;
		root.forEach((identicalPath) => {
			plain = setDeep(plain, parsePath(identicalPath, legacyPaths), () => plain);
		});
		if (other) forEach(other, apply);
	} else forEach(annotations, apply);
	return plain;
}
var isDeep = (object, superJson) => isPlainObject$1(object) || isArray(object) || isMap(object) || isSet(object) || isError(object) || isInstanceOfRegisteredClass(object, superJson);
function addIdentity(object, path, identities) {
	const existingSet = identities.get(object);
	if (existingSet) existingSet.push(path);
	else identities.set(object, [path]);
}
function generateReferentialEqualityAnnotations(identitites, dedupe) {
	const result = {};
	let rootEqualityPaths = void 0;
	identitites.forEach((paths) => {
		if (paths.length <= 1) return;
		if (!dedupe) paths = paths.map((path) => path.map(String)).sort((a, b) => a.length - b.length);
		const [representativePath, ...identicalPaths] = paths;
		if (representativePath.length === 0) rootEqualityPaths = identicalPaths.map(stringifyPath);
		else result[stringifyPath(representativePath)] = identicalPaths.map(stringifyPath);
	});
	if (rootEqualityPaths) {
		if (isEmptyObject(result)) return [rootEqualityPaths];
		else return [rootEqualityPaths, result];
	} else return isEmptyObject(result) ? void 0 : result;
}
var walker = (object, identities, superJson, dedupe, path = [], objectsInThisPath = [], seenObjects = /* @__PURE__ */ new Map()) => {
	const primitive = isPrimitive(object);
	if (!primitive) {
		addIdentity(object, path, identities);
		const seen = seenObjects.get(object);
		if (seen) return dedupe ? { transformedValue: null } : seen;
	}
	if (!isDeep(object, superJson)) {
		const transformed = transformValue(object, superJson);
		const result = transformed ? {
			transformedValue: transformed.value,
			annotations: [transformed.type]
		} : { transformedValue: object };
		if (!primitive) seenObjects.set(object, result);
		return result;
	}
	if (includes(objectsInThisPath, object)) return { transformedValue: null };
	const transformationResult = transformValue(object, superJson);
	const transformed = transformationResult?.value ?? object;
	const transformedValue = isArray(transformed) ? [] : {};
	const innerAnnotations = {};
	forEach(transformed, (value, index) => {
		if (index === "__proto__" || index === "constructor" || index === "prototype") throw new Error(`Detected property ${index}. This is a prototype pollution risk, please remove it from your object.`);
		const recursiveResult = walker(value, identities, superJson, dedupe, [...path, index], [...objectsInThisPath, object], seenObjects);
		transformedValue[index] = recursiveResult.transformedValue;
		if (isArray(recursiveResult.annotations)) innerAnnotations[escapeKey(index)] = recursiveResult.annotations;
		else if (isPlainObject$1(recursiveResult.annotations)) forEach(recursiveResult.annotations, (tree, key) => {
			innerAnnotations[escapeKey(index) + "." + key] = tree;
		});
	});
	const result = isEmptyObject(innerAnnotations) ? {
		transformedValue,
		annotations: !!transformationResult ? [transformationResult.type] : void 0
	} : {
		transformedValue,
		annotations: !!transformationResult ? [transformationResult.type, innerAnnotations] : innerAnnotations
	};
	if (!primitive) seenObjects.set(object, result);
	return result;
};
// node_modules/copy-anything/dist/index.js
/**
* Assigns a prop the copy is keeping, preserving whether it was enumerable. Callers decide
* _whether_ to keep a non-enumerable prop before getting here, so by this point the answer is
* always yes.
*/
function assignProp(carry, key, newVal, originalObject) {
	if (Object.prototype.propertyIsEnumerable.call(originalObject, key)) {
		carry[key] = newVal;
		return;
	}
	Object.defineProperty(carry, key, {
		value: newVal,
		enumerable: false,
		writable: true,
		configurable: true
	});
}
/**
* Whether `value` is an object literal, as opposed to a class instance, a built-in like `Date`, an
* `arguments` object, or an object with a null prototype.
*
* The prototype check comes first because it is cheap and rejects almost everything; the tag check
* is only reached by values that are about to be cloned anyway.
*/
function isPlainObject(value) {
	return Object.getPrototypeOf(value) === Object.prototype && Object.prototype.toString.call(value) === "[object Object]";
}
/**
* Returns the clone that `value` should be replaced with, and queues it to be filled in later.
* Anything that isn't an array or a plain object is returned untouched.
*
* Reusing the clone already registered in `clones` is what makes circular and shared references
* work: the placeholder is registered before its contents exist, so a reference back to an ancestor
* resolves to it rather than walking forever.
*/
function cloneRef(value, clones, sources, dests) {
	if (typeof value !== "object" || value === null) return value;
	const array = Array.isArray(value);
	if (!array && !isPlainObject(value)) return value;
	const existing = clones.get(value);
	if (existing !== void 0) return existing;
	const clone = array ? new Array(value.length) : {};
	clones.set(value, clone);
	sources.push(value);
	dests.push(clone);
	return clone;
}
/**
* Copy (clone) an object and all its props recursively to get rid of any prop referenced of the
* original object. Arrays and the objects inside them are cloned as well.
*
* Nesting depth is limited only by available memory, and circular references are reproduced in the
* copy rather than followed forever. Two props pointing at the same object still point at one
* shared copy afterwards.
*
* @param target Target can be anything
* @param [options={}] See type {@link Options} for more details.
*
*   - `{ props: ['key1'] }` will only copy the `key1` property. When using this you will need to cast
*       the return type manually (in order to keep the TS implementation in here simple I didn't
*       built a complex auto resolved type for those few cases people want to use this option)
*   - `{ nonenumerable: true }` will copy all non-enumerable properties. Default is `{}`
*
* @returns The target with replaced values
*/
function copy(target, options = {}) {
	if (typeof target !== "object" || target === null) return target;
	const clones = /* @__PURE__ */ new Map();
	const sources = [];
	const dests = [];
	const result = cloneRef(target, clones, sources, dests);
	const onlyProps = Array.isArray(options.props) ? options.props : void 0;
	const nonenumerable = options.nonenumerable === true;
	while (sources.length) {
		const source = sources.pop();
		const dest = dests.pop();
		if (Array.isArray(source)) {
			for (let i = 0; i < source.length; i++) if (i in source) dest[i] = cloneRef(source[i], clones, sources, dests);
			continue;
		}
		if (nonenumerable) for (const key of Object.getOwnPropertyNames(source)) {
			if (key === "__proto__") continue;
			if (onlyProps && !onlyProps.includes(key)) continue;
			assignProp(dest, key, cloneRef(source[key], clones, sources, dests), source);
		}
		else for (const key in source) {
			if (!Object.prototype.hasOwnProperty.call(source, key)) continue;
			if (key === "__proto__") continue;
			if (onlyProps && !onlyProps.includes(key)) continue;
			dest[key] = cloneRef(source[key], clones, sources, dests);
		}
		for (const key of Object.getOwnPropertySymbols(source)) {
			if (onlyProps && !onlyProps.includes(key)) continue;
			if (!nonenumerable && !Object.prototype.propertyIsEnumerable.call(source, key)) continue;
			assignProp(dest, key, cloneRef(source[key], clones, sources, dests), source);
		}
	}
	return result;
}
// node_modules/superjson/dist/index.js
var SuperJSON = class {
	/**
	* @param dedupeReferentialEqualities  If true, SuperJSON will make sure only one instance of referentially equal objects are serialized and the rest are replaced with `null`.
	*/
	constructor({ dedupe = false } = {}) {
		this.classRegistry = new ClassRegistry();
		this.symbolRegistry = new Registry((s) => s.description ?? "");
		this.customTransformerRegistry = new CustomTransformerRegistry();
		this.allowedErrorProps = [];
		this.dedupe = dedupe;
	}
	serialize(object) {
		const identities = /* @__PURE__ */ new Map();
		const output = walker(object, identities, this, this.dedupe);
		const res = { json: output.transformedValue };
		if (output.annotations) res.meta = {
			...res.meta,
			values: output.annotations
		};
		const equalityAnnotations = generateReferentialEqualityAnnotations(identities, this.dedupe);
		if (equalityAnnotations) res.meta = {
			...res.meta,
			referentialEqualities: equalityAnnotations
		};
		if (res.meta) res.meta.v = 1;
		return res;
	}
	deserialize(payload, options) {
		const { json, meta } = payload;
		let result = options?.inPlace ? json : copy(json);
		if (meta?.values) result = applyValueAnnotations(result, meta.values, meta.v ?? 0, this);
		if (meta?.referentialEqualities) result = applyReferentialEqualityAnnotations(result, meta.referentialEqualities, meta.v ?? 0);
		return result;
	}
	stringify(object) {
		return JSON.stringify(this.serialize(object));
	}
	parse(string) {
		return this.deserialize(JSON.parse(string), { inPlace: true });
	}
	registerClass(v, options) {
		this.classRegistry.register(v, options);
	}
	registerSymbol(v, identifier) {
		this.symbolRegistry.register(v, identifier);
	}
	registerCustom(transformer, name) {
		this.customTransformerRegistry.register({
			name,
			...transformer
		});
	}
	allowErrorProps(...props) {
		this.allowedErrorProps.push(...props);
	}
};
SuperJSON.defaultInstance = new SuperJSON();
SuperJSON.serialize = SuperJSON.defaultInstance.serialize.bind(SuperJSON.defaultInstance);
SuperJSON.deserialize = SuperJSON.defaultInstance.deserialize.bind(SuperJSON.defaultInstance);
SuperJSON.stringify = SuperJSON.defaultInstance.stringify.bind(SuperJSON.defaultInstance);
SuperJSON.parse = SuperJSON.defaultInstance.parse.bind(SuperJSON.defaultInstance);
SuperJSON.registerClass = SuperJSON.defaultInstance.registerClass.bind(SuperJSON.defaultInstance);
SuperJSON.registerSymbol = SuperJSON.defaultInstance.registerSymbol.bind(SuperJSON.defaultInstance);
SuperJSON.registerCustom = SuperJSON.defaultInstance.registerCustom.bind(SuperJSON.defaultInstance);
SuperJSON.allowErrorProps = SuperJSON.defaultInstance.allowErrorProps.bind(SuperJSON.defaultInstance);
SuperJSON.serialize;
SuperJSON.deserialize;
SuperJSON.stringify;
SuperJSON.parse;
SuperJSON.registerClass;
SuperJSON.registerCustom;
SuperJSON.registerSymbol;
SuperJSON.allowErrorProps;
// client/request.ts
/** Sends calls of one kind as one batch of tRPC's protocol, always by POST: no input ends up in the log of a proxy. */
async function sendRequest({ url, fetch: send = fetch }, calls, headers, signal) {
	const paths = calls.map(({ path }) => path).join();
	const address = `${url.replace(/\/+$/, "")}/trpc/${paths}?batch=1&kind=${calls[0].kind}`;
	const body = `{${calls.map(({ input }, index) => `"${index}":${input.text}`)}}`;
	try {
		const response = await send(address, {
			method: "POST",
			body,
			signal,
			headers: {
				"content-type": "application/json",
				...await headers()
			}
		});
		const answer = await readAnswer(response);
		return {
			outcomes: calls.map((call, index) => outcomeOf(Array.isArray(answer) ? answer[index] : answer, response, call)),
			quota: quotaIn(response)
		};
	} catch (thrown) {
		return { outcomes: calls.map((call) => ({ error: errorOf(thrown, call) })) };
	}
}
function outcomeOf(sent, response, call) {
	try {
		if (sent?.result) return { result: SuperJSON.deserialize(sent.result.data) };
		const { message, data } = SuperJSON.deserialize(sent.error);
		return { error: new DeckhandError(message, {
			response,
			data,
			call
		}) };
	} catch (error) {
		return { error: errorOf(new ForeignAnswer(response, error), call) };
	}
}
/** Undefined if a proxy left out the headers. */
function quotaIn({ headers }) {
	const [limit, remaining] = ["limit", "remaining"].map((name) => headers.get(`x-ratelimit-${name}`));
	return limit && remaining ? {
		limit: Number(limit),
		remaining: Number(remaining)
	} : void 0;
}
// client/session.ts
function openSession({ token, signIn, onSignIn }, authenticate) {
	let renewed;
	const current = async () => sendable(renewed ?? await (typeof token === "function" ? askedFor("token", token) : token));
	if (!signIn) return {
		token: current,
		renew: void 0
	};
	const { email, password, code, is_recovery = false } = signIn;
	let underWay;
	async function renew() {
		const isUnused = typeof code === "string" && renewed === void 0;
		try {
			await signInWith(isUnused ? code : void 0);
		} catch (error) {
			const asked = typeof code === "function" && isCodeRequired(error) && await askedFor("signIn.code", code);
			if (!asked) throw error;
			await signInWith(asked);
		}
	}
	/** Sends the earlier token, so that a remembered device needs no code. */
	async function signInWith(code) {
		const earlier = await current();
		const user = await authenticate({
			email,
			password,
			...earlier && { token: earlier },
			...code && {
				code,
				is_recovery
			}
		});
		renewed = user.token;
		await askedFor("onSignIn", () => onSignIn?.(user));
	}
	return {
		token: current,
		renew: () => {
			underWay ??= renew().finally(() => {
				underWay = void 0;
			});
			return underWay;
		}
	};
}
/** Signs in before the first call, and again after a 401; a second 401 is thrown. */
async function signedIn({ token, renew }, call, send) {
	if (!renew || isSignIn$1(call)) return send();
	const signIn = async () => {
		call.stopwatch.wait();
		await renew();
		call.signal.throwIfAborted();
	};
	if (!await token()) await signIn();
	const used = await token();
	try {
		return await send();
	} catch (error) {
		if (!isRefusal(error) || error.status !== 401) throw error;
		if (await token() === used) await signIn();
		return send();
	}
}
/** Throws for a token that no header can have: the error of `fetch` would contain it, and end up in logs. */
function sendable(token) {
	if (token === void 0 || /^[\x20-\x7e]*\s*$/.test(token)) return token;
	throw new DeckhandError("token must have only printable ASCII characters.");
}
async function askedFor(name, ask) {
	try {
		return await ask();
	} catch (error) {
		throw errorOfOwn(name, error);
	}
}
var isCodeRequired = (error) => isRefusal(error) && error.reason === "code_required";
// client/trace.ts
/** The headers that name the trace of the caller. */
function traceHeaders(traceparent) {
	if (!traceparent) return activeTrace();
	try {
		const given = traceparent();
		return given ? { traceparent: given } : {};
	} catch (error) {
		throw errorOfOwn("traceparent", error);
	}
}
function activeTrace() {
	const { context, propagation } = globalThis[api] ?? {};
	if (!context || !propagation) return {};
	const sent = {};
	try {
		const set = (to, name, value) => {
			if (name === "traceparent" || name === "tracestate") to[name] = value;
		};
		propagation.inject(context.active(), sent, { set });
	} catch {}
	return sent;
}
var api = Symbol.for("opentelemetry.js.api.1");
// client/client.ts
/** A typed client of every procedure: `client.cards.create.mutate({ title: 'First card' })`. Calls made at once are batched. */
function createClient(options) {
	mustBeValid(options);
	const { url, fetch, retries = 3, maxInFlight = 100, traceparent } = options;
	const session = openSession(options, (input) => client.auth.authenticate.mutate(input));
	const lineOf = (largestBatch, tokenOf) => makeLine({
		largestBatch,
		maxInFlight,
		retries,
		send: (calls, signal) => {
			const headers = async () => {
				const token = await tokenOf();
				return {
					...calls[0].trace,
					...token && { authorization: `Bearer ${token}` },
					...projectHeader(calls),
					...keyHeader(calls),
					...requestIdHeader(calls)
				};
			};
			return sendRequest({
				url,
				fetch
			}, calls, headers, signal);
		}
	});
	const line = lineOf(50, session.token);
	const signInLine = lineOf(1, async () => void 0);
	const send = async ({ path, kind, input: given, options, caller }) => {
		const { signal, projectId, idempotencyKey } = options;
		try {
			const input = writeInput(given);
			const key = kind === "mutation" && !isSignIn$1({ path }) ? validKey(idempotencyKey ?? newName()) : void 0;
			signal?.throwIfAborted();
			return await withTimeOut(options, {
				path,
				kind,
				input,
				projectId,
				idempotencyKey: key,
				trace: traceHeaders(traceparent)
			}, (call) => signedIn(session, call, () => (isSignIn$1(call) ? signInLine : line)(call)));
		} catch (error) {
			signal?.throwIfAborted();
			throw thrownAt(caller, errorOf(error));
		}
	};
	const client = withDefaults(options, send);
	return client;
}
/** The calls of a request have the same project. */
function projectHeader([first]) {
	const { projectId } = first;
	return projectId === void 0 ? {} : { "x-project-id": String(projectId) };
}
/** Names the request of these calls, so that the log of the service can be searched for a call even if no answer came. */
function requestIdHeader(calls) {
	const id = newName();
	for (const call of calls) call.requestId = id;
	return { "x-request-id": id };
}
export { DeckhandError, createClient, isRefusal };
