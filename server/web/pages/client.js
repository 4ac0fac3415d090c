// @ts-nocheck
/*!
Made from client/client.ts by `npm run page-client`: change that instead. It contains:

@trpc/server 11.22.1

MIT License

Copyright (c) 2023 Alex Johansson

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


@trpc/client 11.22.1

MIT License

Copyright (c) 2023 Alex Johansson

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
	/** The HTTP status; undefined without a response. */
	status;
	/** A stable error code for programs; undefined without a response from the service. */
	reason;
	/** The messages of a 422 by field: `{ title: ['title is required.'] }`; otherwise empty. */
	fields;
	/** Seconds until a retry, if the service said so. */
	retryAfterSeconds;
	/** The id of the last request in the service's log, even without a response; undefined if nothing was sent. */
	requestId;
	/** The key of a mutation: a repeat with this `idempotencyKey` is not executed a second time. */
	idempotencyKey;
	/** The error data of the service; undefined without a response from the service. */
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
/** Whether the service responded with an error: see `error.status`, `error.reason` and, for a 422, `error.fields`. */
function isRefusal(error) {
	return error instanceof DeckhandError && error.status !== void 0;
}
/** Converts what tRPC or `fetch` threw into a `DeckhandError`. */
function toDeckhandError(thrown, call = {}) {
	if (thrown instanceof DeckhandError) return thrown;
	const { message, data, meta, cause } = thrown;
	if (cause instanceof DeckhandError) return cause;
	if (cause instanceof ForeignResponse) return notFromService(cause.response, call, cause.cause);
	const response = meta?.response;
	if (data) return new DeckhandError(message, {
		response,
		data,
		call
	});
	if (response) return notFromService(response, call, thrown);
	call.wasSent ||= !hadNoConnection(thrown);
	return new DeckhandError(`${`No response (${causesOf(thrown)}). Check the url, and that the service runs.`}${executedWarning(call)}`, {
		call,
		cause: thrown
	});
}
function timeoutError(milliseconds, call) {
	return new DeckhandError(`No response within ${milliseconds} ms.${executedWarning({
		...call,
		wasSent: call.requestId !== void 0
	})}`, { call });
}
/** For an error thrown by a function of the caller, such as `token`. */
function callbackError(name, thrown) {
	return new DeckhandError(`${name} threw an error: ${causesOf(thrown)}`, { cause: thrown });
}
/** A copy with the stack of the line that made the call: several calls of a batch can fail with one error. */
function withCallerStack(error, { stack = "" }) {
	const copy = Object.assign(new DeckhandError(error.message, { cause: error.cause }), error);
	const lines = stack.split("\n").filter((line) => /^\s*at |@/.test(line));
	return Object.assign(copy, { stack: [`${error.name}: ${error.message}`, ...lines].join("\n") });
}
/** Throws unless the response is JSON: a proxy whose service is down sends an error page. */
function requireJson(response) {
	if (!response.headers.get("content-type")?.includes("json")) throw new ForeignResponse(response);
	const read = response.json.bind(response);
	const json = () => read().catch((error) => {
		throw error.name === "SyntaxError" ? new ForeignResponse(response, error) : error;
	});
	return Object.assign(response, { json });
}
var ForeignResponse = class extends Error {
	response;
	constructor(response, cause) {
		super("The response is not from Deckhand.", { cause });
		this.response = response;
	}
};
function notFromService(response, call, cause) {
	call.wasSent = true;
	const warning = response.status >= 500 ? executedWarning(call) : "";
	return new DeckhandError(`The response with status ${response.status} is not from Deckhand. Check the url (without /api), and any proxy in between.${warning}`, {
		response,
		call,
		cause
	});
}
/** Only mutations have a key. */
function executedWarning({ idempotencyKey, wasSent }) {
	if (idempotencyKey === void 0 || !wasSent) return "";
	return " The call may have been executed: repeat it with the error's idempotencyKey to get its response.";
}
function hadNoConnection(thrown) {
	for (let error = thrown; error instanceof Error; error = error.cause) if ([
		"ECONNREFUSED",
		"ENOTFOUND",
		"EAI_AGAIN"
	].includes(error.code ?? "")) return true;
	return false;
}
/** Node's own message is only "fetch failed"; the causes say why. */
function causesOf(thrown) {
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
/** A random id. Browsers have no `crypto.randomUUID` on pages without HTTPS. */
function newId() {
	const bytes = crypto.getRandomValues(/* @__PURE__ */ new Uint8Array(16));
	return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
function keyHeader(calls) {
	const keys = calls.map(({ idempotencyKey }) => idempotencyKey);
	return keys.some((key) => key !== void 0) ? { "idempotency-key": keys.join() } : {};
}
/** Throws for an invalid key, which would fail the other calls of its batch, too. */
function validKey(key) {
	if (/^[\x21-\x2b\x2d-\x7e]([\x20-\x2b\x2d-\x7e]{0,253}[\x21-\x2b\x2d-\x7e])?$/.test(key)) return key;
	throw new DeckhandError("idempotencyKey must have 1 to 255 printable ASCII characters without commas.");
}
// client/input.ts
/** Serializes an input; a `Date` becomes text. Throws for values that JSON changes: an invalid `Date` is null, which clears a field. */
function writeInput(input) {
	let fields = 0;
	const paths = /* @__PURE__ */ new Map();
	function check(key, value) {
		fields++;
		const parent = paths.get(this);
		const path = parent ? `${parent}.${key}` : key;
		const changed = changedByJson(this[key], value);
		if (changed) throw new DeckhandError(`${path || "The input"} can't be sent: it is ${changed}.`);
		if (typeof value === "object") paths.set(value, path);
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
/** Describes a value that JSON can't represent; `value` is the result of its `toJSON`. */
function changedByJson(original, value) {
	const [, type = ""] = /^\[object (.+)\]$/.exec(Object.prototype.toString.call(original)) ?? [];
	if (value === null && original !== null) return type === "Date" ? "an invalid Date" : "null as JSON";
	if (typeof value === "number" && !Number.isFinite(value)) return String(value);
	return EMPTY_IN_JSON.has(type) && value === original ? `a ${type}` : void 0;
}
/** Types that JSON writes as `{}`. */
var EMPTY_IN_JSON = /* @__PURE__ */ new Set([
	"Map",
	"Set",
	"Promise",
	"RegExp"
]);
// client/retry.ts
/**
* A 429 means that the call was not executed. After other errors it may have been: only queries, and mutations with an idempotency
* key, are safe. Errors before the request, such as those of a `token` function, are not retried.
*/
function isSafeToRepeat({ kind, idempotencyKey }, error) {
	const { status, requestId } = error;
	if (isTooLong(error)) return false;
	if (status === 429) return true;
	return (status === void 0 ? requestId !== void 0 : PROXY_STATUSES.has(status)) && (kind === "query" || idempotencyKey !== void 0);
}
var isOverLimit = (error) => error.reason === "over_rate_limit" && !isTooLong(error);
/** What proxies send while the service is down. */
var PROXY_STATUSES = /* @__PURE__ */ new Set([
	502,
	503,
	504
]);
var FIRST_WAIT_SECONDS = .25;
/** One window of the rate limit; the caller decides about longer waits. */
var LONGEST_WAIT_SECONDS = 60;
var isTooLong = ({ retryAfterSeconds = 0 }) => retryAfterSeconds > LONGEST_WAIT_SECONDS;
/** Exponential backoff with jitter, never before Retry-After. */
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
		update: (quota, othersInFlight) => {
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
/** A mutation may be a sync or push to thousands of projects. */
var DEFAULT_MILLISECONDS = {
	query: 6e4,
	mutation: 3e5
};
/** Runs a call with its own signal, so that no listeners stay on the caller's, which many calls may share. */
async function withTimeOut({ signal, timeoutMilliseconds }, begun, work) {
	const isDefault = timeoutMilliseconds === void 0;
	const milliseconds = isDefault ? DEFAULT_MILLISECONDS[begun.kind] : validTimeOut(timeoutMilliseconds);
	const controller = new AbortController();
	const { run, rest } = makeStopwatch(milliseconds, controller.signal, () => controller.abort(timeoutError(milliseconds, call)));
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
/** The maximum of `setTimeout`, 24 days; longer timers fire at once. */
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
/** Queues calls, sends them in batches, and retries what failed and is safe to repeat. */
function makeLine({ largestBatch, maxInFlight, retries, send }) {
	const lanes = /* @__PURE__ */ new Map();
	const pace = makePace(sendSoon);
	let inFlight = 0;
	let queued = 0;
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
		queued++;
	}
	function leave({ call }) {
		call.signal.removeEventListener("abort", giveUp);
		call.stopwatch.run();
		giveUp();
	}
	/** Stops the timer when no call is queued, or it would keep the process alive. */
	function giveUp() {
		queued--;
		if (queued > 0) return;
		lanes.clear();
		pace.wake();
	}
	/** In the next turn of the event loop, so that calls made at once share a batch. */
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
	/** Never rejects. A batch counts as in flight during its retry pause, which relieves a service in trouble. */
	async function sendUntilSettled(taken) {
		let batch = taken;
		inFlight += batch.length;
		for (let retry = 0; batch.length > 0; retry++) {
			const failed = await attempt(batch);
			const requeued = failed.filter((each) => retries > 0 && mustRequeue(each, batch.length));
			const retried = failed.filter((each) => !requeued.includes(each) && retry < retries && isRepeatable(each));
			for (const each of failed) if (!requeued.includes(each) && !retried.includes(each)) each.waiting.reject(each.error);
			requeue(requeued);
			release(batch.length - retried.length);
			if (retried.length === 0) return;
			await pauseBefore(retry, retried);
			batch = retried.map((each) => each.waiting).filter(isWanted);
			release(retried.length - batch.length);
		}
	}
	/** Resolves the calls that succeeded, and returns the others. */
	async function attempt(batch) {
		pace.spend(batch.length);
		const calls = batch.map(({ call }) => call);
		const { outcomes, quota } = await whileWanted(batch, (signal) => send(calls, signal)).catch(() => ({ outcomes: [] }));
		pace.update(quota, inFlight - batch.length);
		return batch.flatMap((waiting, index) => {
			const outcome = outcomes[index];
			if (!outcome) return [];
			if ("error" in outcome) return {
				waiting,
				error: outcome.error
			};
			waiting.resolve(outcome.result);
			return [];
		});
	}
	/** To the front of their lane. */
	function requeue(failed) {
		const [first] = failed;
		if (!first) return;
		const waiting = failed.map((each) => each.waiting);
		waiting.forEach(enter);
		const key = laneOf(first.waiting.call);
		lanes.set(key, [...waiting, ...lanes.get(key) ?? []]);
		const errors = failed.map(({ error }) => error).filter(isOverLimit);
		if (errors.length > 0) pace.rest(errors);
	}
	function release(calls) {
		inFlight -= calls;
		sendSoon();
	}
}
/** Calls of one lane can share a batch, which has one project and either queries or mutations. */
var laneOf = ({ kind, projectId }) => `${kind} ${projectId}`;
/** Takes the first calls that fit into one request. A call above the limit is sent alone: the service reports the error. */
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
/** `"49":` before an input, and a comma after it. */
var ENVELOPE_BYTES = 6;
var ENVELOPE_FIELDS = 1;
var isWanted = ({ call }) => !call.signal.aborted;
var isRepeatable = ({ waiting, error }) => isWanted(waiting) && isSafeToRepeat(waiting.call, error);
/** Errors that are not about the call itself: sending it later is not a retry. */
var mustRequeue = ({ waiting, error }, calls) => isWanted(waiting) && (isOverLimit(error) || error.reason === "batch_answers_too_large" && calls > 1);
/** One pause for the whole batch, so that its calls are sent together again. */
async function pauseBefore(retry, failed) {
	const waiting = failed.map((each) => each.waiting);
	const errors = failed.map(({ error }) => error);
	for (const { call } of waiting) call.stopwatch.wait();
	await whileWanted(waiting, (signal) => pause(millisecondsBefore(retry, errors), signal)).catch(() => void 0);
	for (const { call } of waiting) call.stopwatch.run();
}
/** Aborts the work when all of its calls are aborted. */
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
/** Throws for a missing or invalid option, for callers without a compiler. */
function checkOptions(options) {
	const given = Object(options);
	for (const [name, [isValid, rule]] of Object.entries(RULES)) if (!(given[name] === void 0 && name !== "url") && !isValid(given[name])) throw new DeckhandError(`${name} must be ${rule}.`);
}
var isText = (value) => typeof value === "string";
var isFunction$1 = (value) => typeof value === "function";
var isAddress = (value) => isText(value) && /^https?:/.test(value) && URL.canParse(value);
function isSignIn(value) {
	const { email, password, code } = Object(value);
	return isText(email) && isText(password) && (code === void 0 || isText(code) || isFunction$1(code));
}
var wholeNumberFrom = (least) => [(value) => Number.isSafeInteger(value) && value >= least, `a whole number from ${least} on`];
var RULES = {
	url: [isAddress, "the address of the service, such as http://127.0.0.1:3000"],
	token: [(value) => isText(value) || isFunction$1(value), "text or a function"],
	signIn: [isSignIn, "an object with email and password, and perhaps a code"],
	onSignIn: [isFunction$1, "a function"],
	projectId: wholeNumberFrom(1),
	timeoutMilliseconds: [isTimeOut, TIME_OUTS],
	retries: wholeNumberFrom(0),
	maxInFlight: wholeNumberFrom(1),
	traceparent: [isFunction$1, "a function"],
	fetch: [isFunction$1, "a function"]
};
// client/proxy.ts
function withDefaults(defaults, send) {
	const as = (changed) => withDefaults(mergeDefaults(defaults, changed), send);
	const sendMerged = (call) => send({
		...call,
		options: {
			...call.options,
			...mergeDefaults(defaults, call.options)
		}
	});
	return procedureAt([], sendMerged, { as });
}
/** A field that is undefined does not replace a default. */
function mergeDefaults(defaults, changed) {
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
		if (!METHODS.has(method)) throw withCallerStack(new DeckhandError(wrongMethod(path)), caller);
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
		if (typeof name === "symbol" || NOT_PROCEDURES.has(name)) return void 0;
		return Object.hasOwn(members, name) ? members[name] : procedureAt([...path, name], send);
	} });
}
var METHODS = /* @__PURE__ */ new Set([
	"query",
	"mutate",
	"each"
]);
/** For JavaScript, where the compiler does not catch `client.cards.create(…)`. */
var wrongMethod = (path) => `${["client", ...path].join(".")} can't be called: a procedure has query or each if it reads, mutate if it changes something.`;
/** Properties that JavaScript reads when a value is awaited or printed. */
var NOT_PROCEDURES = /* @__PURE__ */ new Set([
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
// node_modules/@trpc/server/dist/observable-yEyhfXUI.mjs
/** @public */
function observable(subscribe) {
	const self = {
		subscribe(observer) {
			let teardownRef = null;
			let isDone = false;
			let unsubscribed = false;
			let teardownImmediately = false;
			function unsubscribe() {
				if (teardownRef === null) {
					teardownImmediately = true;
					return;
				}
				if (unsubscribed) return;
				unsubscribed = true;
				if (typeof teardownRef === "function") teardownRef();
				else if (teardownRef) teardownRef.unsubscribe();
			}
			teardownRef = subscribe({
				next(value) {
					var _observer$next;
					if (isDone) return;
					(_observer$next = observer.next) === null || _observer$next === void 0 || _observer$next.call(observer, value);
				},
				error(err) {
					var _observer$error;
					if (isDone) return;
					isDone = true;
					(_observer$error = observer.error) === null || _observer$error === void 0 || _observer$error.call(observer, err);
					unsubscribe();
				},
				complete() {
					var _observer$complete;
					if (isDone) return;
					isDone = true;
					(_observer$complete = observer.complete) === null || _observer$complete === void 0 || _observer$complete.call(observer);
					unsubscribe();
				}
			});
			if (teardownImmediately) unsubscribe();
			return { unsubscribe };
		},
		pipe(...operations) {
			return operations.reduce(pipeReducer, self);
		}
	};
	return self;
}
function pipeReducer(prev, fn) {
	return fn(prev);
}
/** @internal */
function observableToPromise(observable) {
	const ac = new AbortController();
	return new Promise((resolve, reject) => {
		let isDone = false;
		function onDone() {
			if (isDone) return;
			isDone = true;
			obs$.unsubscribe();
		}
		ac.signal.addEventListener("abort", () => {
			reject(ac.signal.reason);
		});
		const obs$ = observable.subscribe({
			next(data) {
				isDone = true;
				resolve(data);
				onDone();
			},
			error(data) {
				reject(data);
			},
			complete() {
				ac.abort();
				onDone();
			}
		});
	});
}
// node_modules/@trpc/server/dist/observable-CkXWrCsV.mjs
function share(_opts) {
	return (source) => {
		let refCount = 0;
		let subscription = null;
		let isConnecting = false;
		let observers = /* @__PURE__ */ new Set();
		function startIfNeeded() {
			if (subscription || isConnecting) return;
			isConnecting = true;
			let isDone = false;
			let sourceSubscription;
			try {
				sourceSubscription = source.subscribe({
					next(value) {
						notify(observers, (observer) => {
							var _observer$next;
							return (_observer$next = observer.next) === null || _observer$next === void 0 ? void 0 : _observer$next.call(observer, value);
						});
					},
					error(error) {
						isDone = true;
						terminate((observer) => {
							var _observer$error;
							return (_observer$error = observer.error) === null || _observer$error === void 0 ? void 0 : _observer$error.call(observer, error);
						});
					},
					complete() {
						isDone = true;
						terminate((observer) => {
							var _observer$complete;
							return (_observer$complete = observer.complete) === null || _observer$complete === void 0 ? void 0 : _observer$complete.call(observer);
						});
					}
				});
			} finally {
				isConnecting = false;
			}
			if (isDone) sourceSubscription.unsubscribe();
			else subscription = sourceSubscription;
		}
		function notify(targets, callback) {
			for (const observer of [...targets]) if (targets.has(observer)) callback(observer);
		}
		function terminate(callback) {
			const _sub = subscription;
			const terminatedObservers = observers;
			subscription = null;
			observers = /* @__PURE__ */ new Set();
			isConnecting = false;
			try {
				notify(terminatedObservers, callback);
			} finally {
				_sub === null || _sub === void 0 || _sub.unsubscribe();
			}
		}
		function resetSource() {
			const _sub = subscription;
			subscription = null;
			_sub === null || _sub === void 0 || _sub.unsubscribe();
		}
		function resetIfNeeded() {
			if (refCount === 0 && subscription) resetSource();
		}
		return observable((subscriber) => {
			refCount++;
			const subscriberObservers = observers;
			subscriberObservers.add(subscriber);
			startIfNeeded();
			return { unsubscribe() {
				refCount--;
				resetIfNeeded();
				subscriberObservers.delete(subscriber);
			} };
		});
	};
}
/**
* @internal
* An observable that maintains and provides a "current value" to subscribers
* @see https://www.learnrxjs.io/learn-rxjs/subjects/behaviorsubject
*/
function behaviorSubject(initialValue) {
	let value = initialValue;
	const observerList = [];
	const addObserver = (observer) => {
		if (value !== void 0) observer.next(value);
		observerList.push(observer);
	};
	const removeObserver = (observer) => {
		observerList.splice(observerList.indexOf(observer), 1);
	};
	const obs = observable((observer) => {
		addObserver(observer);
		return () => {
			removeObserver(observer);
		};
	});
	obs.next = (nextValue) => {
		if (value === nextValue) return;
		value = nextValue;
		for (const observer of observerList) observer.next(nextValue);
	};
	obs.get = () => value;
	return obs;
}
// node_modules/@trpc/client/dist/splitLink-BZPioDdG.mjs
/** @internal */
function createChain(opts) {
	return observable((observer) => {
		function execute(index = 0, op = opts.op) {
			const next = opts.links[index];
			if (!next) throw new Error("No more links to execute - did you forget to add an ending link?");
			return next({
				op,
				next(nextOp) {
					return execute(index + 1, nextOp);
				}
			});
		}
		return execute().subscribe(observer);
	});
}
// node_modules/@trpc/client/dist/objectSpread2-weooBxVk.mjs
function _typeof$1(o) {
	"@babel/helpers - typeof";
	return _typeof$1 = "function" == typeof Symbol && "symbol" == typeof Symbol.iterator ? function(o) {
		return typeof o;
	} : function(o) {
		return o && "function" == typeof Symbol && o.constructor === Symbol && o !== Symbol.prototype ? "symbol" : typeof o;
	}, _typeof$1(o);
}
function toPrimitive$1(t, r) {
	if ("object" != _typeof$1(t) || !t) return t;
	var e = t[Symbol.toPrimitive];
	if (void 0 !== e) {
		var i = e.call(t, r || "default");
		if ("object" != _typeof$1(i)) return i;
		throw new TypeError("@@toPrimitive must return a primitive value.");
	}
	return ("string" === r ? String : Number)(t);
}
function toPropertyKey$1(t) {
	var i = toPrimitive$1(t, "string");
	return "symbol" == _typeof$1(i) ? i : i + "";
}
function _defineProperty$1(e, r, t) {
	return (r = toPropertyKey$1(r)) in e ? Object.defineProperty(e, r, {
		value: t,
		enumerable: !0,
		configurable: !0,
		writable: !0
	}) : e[r] = t, e;
}
function ownKeys$1(e, r) {
	var t = Object.keys(e);
	if (Object.getOwnPropertySymbols) {
		var o = Object.getOwnPropertySymbols(e);
		r && (o = o.filter(function(r) {
			return Object.getOwnPropertyDescriptor(e, r).enumerable;
		})), t.push.apply(t, o);
	}
	return t;
}
function _objectSpread2$1(e) {
	for (var r = 1; r < arguments.length; r++) {
		var t = null != arguments[r] ? arguments[r] : {};
		r % 2 ? ownKeys$1(Object(t), !0).forEach(function(r) {
			_defineProperty$1(e, r, t[r]);
		}) : Object.getOwnPropertyDescriptors ? Object.defineProperties(e, Object.getOwnPropertyDescriptors(t)) : ownKeys$1(Object(t)).forEach(function(r) {
			Object.defineProperty(e, r, Object.getOwnPropertyDescriptor(t, r));
		});
	}
	return e;
}
// node_modules/@trpc/server/dist/codes-C9N0z0an.mjs
/**
* Check that value is object
* @internal
*/
function isObject(value) {
	return !!value && !Array.isArray(value) && typeof value === "object";
}
/**
* JSON-RPC 2.0 Error codes
*
* `-32000` to `-32099` are reserved for implementation-defined server-errors.
* For tRPC we're copying the last digits of HTTP 4XX errors.
*/
var TRPC_ERROR_CODES_BY_KEY = {
	/**
	* Invalid JSON was received by the server.
	* An error occurred on the server while parsing the JSON text.
	*/
	PARSE_ERROR: -32700,
	/**
	* The JSON sent is not a valid Request object.
	*/
	BAD_REQUEST: -32600,
	INTERNAL_SERVER_ERROR: -32603,
	NOT_IMPLEMENTED: -32603,
	BAD_GATEWAY: -32603,
	SERVICE_UNAVAILABLE: -32603,
	GATEWAY_TIMEOUT: -32603,
	UNAUTHORIZED: -32001,
	PAYMENT_REQUIRED: -32002,
	FORBIDDEN: -32003,
	NOT_FOUND: -32004,
	METHOD_NOT_SUPPORTED: -32005,
	TIMEOUT: -32008,
	CONFLICT: -32009,
	PRECONDITION_FAILED: -32012,
	PAYLOAD_TOO_LARGE: -32013,
	UNSUPPORTED_MEDIA_TYPE: -32015,
	UNPROCESSABLE_CONTENT: -32022,
	PRECONDITION_REQUIRED: -32028,
	TOO_MANY_REQUESTS: -32029,
	CLIENT_CLOSED_REQUEST: -32099
};
TRPC_ERROR_CODES_BY_KEY.BAD_GATEWAY, TRPC_ERROR_CODES_BY_KEY.SERVICE_UNAVAILABLE, TRPC_ERROR_CODES_BY_KEY.GATEWAY_TIMEOUT, TRPC_ERROR_CODES_BY_KEY.INTERNAL_SERVER_ERROR;
// node_modules/@trpc/server/dist/getErrorShape-zlj81BiC.mjs
function _typeof(o) {
	"@babel/helpers - typeof";
	return _typeof = "function" == typeof Symbol && "symbol" == typeof Symbol.iterator ? function(o) {
		return typeof o;
	} : function(o) {
		return o && "function" == typeof Symbol && o.constructor === Symbol && o !== Symbol.prototype ? "symbol" : typeof o;
	}, _typeof(o);
}
function toPrimitive(t, r) {
	if ("object" != _typeof(t) || !t) return t;
	var e = t[Symbol.toPrimitive];
	if (void 0 !== e) {
		var i = e.call(t, r || "default");
		if ("object" != _typeof(i)) return i;
		throw new TypeError("@@toPrimitive must return a primitive value.");
	}
	return ("string" === r ? String : Number)(t);
}
function toPropertyKey(t) {
	var i = toPrimitive(t, "string");
	return "symbol" == _typeof(i) ? i : i + "";
}
function _defineProperty(e, r, t) {
	return (r = toPropertyKey(r)) in e ? Object.defineProperty(e, r, {
		value: t,
		enumerable: !0,
		configurable: !0,
		writable: !0
	}) : e[r] = t, e;
}
function ownKeys(e, r) {
	var t = Object.keys(e);
	if (Object.getOwnPropertySymbols) {
		var o = Object.getOwnPropertySymbols(e);
		r && (o = o.filter(function(r) {
			return Object.getOwnPropertyDescriptor(e, r).enumerable;
		})), t.push.apply(t, o);
	}
	return t;
}
function _objectSpread2(e) {
	for (var r = 1; r < arguments.length; r++) {
		var t = null != arguments[r] ? arguments[r] : {};
		r % 2 ? ownKeys(Object(t), !0).forEach(function(r) {
			_defineProperty(e, r, t[r]);
		}) : Object.getOwnPropertyDescriptors ? Object.defineProperties(e, Object.getOwnPropertyDescriptors(t)) : ownKeys(Object(t)).forEach(function(r) {
			Object.defineProperty(e, r, Object.getOwnPropertyDescriptor(t, r));
		});
	}
	return e;
}
// node_modules/@trpc/server/dist/asyncGeneratorDelegate-FcEJT04i.mjs
/** @internal */
function transformResultInner(response, transformer) {
	if ("error" in response) {
		const error = transformer.deserialize(response.error);
		return {
			ok: false,
			error: _objectSpread2(_objectSpread2({}, response), {}, { error })
		};
	}
	return {
		ok: true,
		result: _objectSpread2(_objectSpread2({}, response.result), (!response.result.type || response.result.type === "data") && {
			type: "data",
			data: transformer.deserialize(response.result.data)
		})
	};
}
var TransformResultError = class extends Error {
	constructor() {
		super("Unable to transform response from server");
	}
};
/**
* Transforms and validates that the result is a valid TRPCResponse
* @internal
*/
function transformResult(response, transformer) {
	let result;
	try {
		result = transformResultInner(response, transformer);
	} catch (_unused) {
		throw new TransformResultError();
	}
	if (!result.ok && (!isObject(result.error.error) || typeof result.error.error["code"] !== "number")) throw new TransformResultError();
	if (result.ok && !isObject(result.result)) throw new TransformResultError();
	return result;
}
function _OverloadYield$1(e, d) {
	this.v = e, this.k = d;
}
function AsyncGenerator$1(e) {
	var r, t;
	function resume(r, t) {
		try {
			var n = e[r](t), o = n.value, u = o instanceof _OverloadYield$1;
			Promise.resolve(u ? o.v : o).then(function(t) {
				if (u) {
					var i = "return" === r ? "return" : "next";
					if (!o.k || t.done) return resume(i, t);
					t = e[i](t).value;
				}
				settle(n.done ? "return" : "normal", t);
			}, function(e) {
				resume("throw", e);
			});
		} catch (e) {
			settle("throw", e);
		}
	}
	function settle(e, n) {
		switch (e) {
			case "return":
				r.resolve({
					value: n,
					done: !0
				});
				break;
			case "throw":
				r.reject(n);
				break;
			default: r.resolve({
				value: n,
				done: !1
			});
		}
		(r = r.next) ? resume(r.key, r.arg) : t = null;
	}
	this._invoke = function(e, n) {
		return new Promise(function(o, u) {
			var i = {
				key: e,
				arg: n,
				resolve: o,
				reject: u,
				next: null
			};
			t ? t = t.next = i : (r = t = i, resume(e, n));
		});
	}, "function" != typeof e["return"] && (this["return"] = void 0);
}
AsyncGenerator$1.prototype["function" == typeof Symbol && Symbol.asyncIterator || "@@asyncIterator"] = function() {
	return this;
}, AsyncGenerator$1.prototype.next = function(e) {
	return this._invoke("next", e);
}, AsyncGenerator$1.prototype["throw"] = function(e) {
	return this._invoke("throw", e);
}, AsyncGenerator$1.prototype["return"] = function(e) {
	return this._invoke("return", e);
};
// node_modules/@trpc/client/dist/TRPCClientError-CxFRO7Js.mjs
function isTRPCClientError(cause) {
	return cause instanceof TRPCClientError;
}
function isTRPCErrorResponse(obj) {
	return isObject(obj) && isObject(obj["error"]) && typeof obj["error"]["code"] === "number" && typeof obj["error"]["message"] === "string";
}
function getMessageFromUnknownError(err, fallback) {
	if (typeof err === "string") return err;
	if (isObject(err) && typeof err["message"] === "string") return err["message"];
	return fallback;
}
var TRPCClientError = class TRPCClientError extends Error {
	constructor(message, opts) {
		var _opts$result, _opts$result2;
		const cause = opts === null || opts === void 0 ? void 0 : opts.cause;
		super(message, { cause });
		_defineProperty$1(this, "cause", void 0);
		_defineProperty$1(this, "shape", void 0);
		_defineProperty$1(this, "data", void 0);
		_defineProperty$1(this, "meta", void 0);
		this.meta = opts === null || opts === void 0 ? void 0 : opts.meta;
		this.cause = cause;
		this.shape = opts === null || opts === void 0 || (_opts$result = opts.result) === null || _opts$result === void 0 ? void 0 : _opts$result.error;
		this.data = opts === null || opts === void 0 || (_opts$result2 = opts.result) === null || _opts$result2 === void 0 ? void 0 : _opts$result2.error.data;
		this.name = "TRPCClientError";
		Object.setPrototypeOf(this, TRPCClientError.prototype);
	}
	static from(_cause, opts = {}) {
		const cause = _cause;
		if (isTRPCClientError(cause)) {
			if (opts.meta) cause.meta = _objectSpread2$1(_objectSpread2$1({}, cause.meta), opts.meta);
			return cause;
		}
		if (isTRPCErrorResponse(cause)) return new TRPCClientError(cause.error.message, _objectSpread2$1(_objectSpread2$1({}, opts), {}, {
			result: cause,
			cause: opts.cause
		}));
		return new TRPCClientError(getMessageFromUnknownError(cause, "Unknown error"), _objectSpread2$1(_objectSpread2$1({}, opts), {}, { cause }));
	}
};
// node_modules/@trpc/client/dist/unstable-internals.mjs
/**
* @internal
*/
/**
* @internal
*/
function getTransformer(transformer) {
	const _transformer = transformer;
	if (!_transformer) return {
		input: {
			serialize: (data) => data,
			deserialize: (data) => data
		},
		output: {
			serialize: (data) => data,
			deserialize: (data) => data
		}
	};
	if ("input" in _transformer) return _transformer;
	return {
		input: _transformer,
		output: _transformer
	};
}
// node_modules/@trpc/client/dist/httpUtils-CB_100ND.mjs
var isFunction = (fn) => typeof fn === "function";
function getFetch(customFetchImpl) {
	if (customFetchImpl) return customFetchImpl;
	if (typeof window !== "undefined" && isFunction(window.fetch)) return window.fetch.bind(window);
	if (typeof globalThis !== "undefined" && isFunction(globalThis.fetch)) return globalThis.fetch;
	throw new Error("No fetch implementation found");
}
/**
* Like `Promise.all()` but for abort signals
* - When all signals have been aborted, the merged signal will be aborted
* - If one signal is `null`, no signal will be aborted
*/
function allAbortSignals(...signals) {
	const ac = new AbortController();
	const count = signals.length;
	let abortedCount = 0;
	const onAbort = () => {
		if (++abortedCount === count) ac.abort();
	};
	for (const signal of signals) if (signal === null || signal === void 0 ? void 0 : signal.aborted) onAbort();
	else signal === null || signal === void 0 || signal.addEventListener("abort", onAbort, { once: true });
	return ac.signal;
}
/**
* Like `Promise.race` but for abort signals
*
* Basically, a ponyfill for
* [`AbortSignal.any`](https://developer.mozilla.org/en-US/docs/Web/API/AbortSignal/any_static).
*/
function raceAbortSignals(...signals) {
	const ac = new AbortController();
	for (const signal of signals) if (signal === null || signal === void 0 ? void 0 : signal.aborted) ac.abort();
	else signal === null || signal === void 0 || signal.addEventListener("abort", () => ac.abort(), { once: true });
	return ac.signal;
}
function resolveHTTPLinkOptions(opts) {
	return {
		url: opts.url.toString(),
		fetch: opts.fetch,
		transformer: getTransformer(opts.transformer),
		methodOverride: opts.methodOverride
	};
}
function arrayToDict(array) {
	const dict = {};
	for (let index = 0; index < array.length; index++) {
		const element = array[index];
		dict[index] = element;
	}
	return dict;
}
var METHOD = {
	query: "GET",
	mutation: "POST",
	subscription: "PATCH"
};
function getInput(opts) {
	return "input" in opts ? opts.transformer.input.serialize(opts.input) : arrayToDict(opts.inputs.map((_input) => opts.transformer.input.serialize(_input)));
}
var getUrl = (opts) => {
	const parts = opts.url.split("?");
	let url = parts[0].replace(/\/$/, "") + "/" + opts.path;
	const queryParts = [];
	if (parts[1]) queryParts.push(parts[1]);
	if ("inputs" in opts) queryParts.push("batch=1");
	if (opts.type === "query" || opts.type === "subscription") {
		const input = getInput(opts);
		if (input !== void 0 && opts.methodOverride !== "POST") queryParts.push(`input=${encodeURIComponent(JSON.stringify(input))}`);
	}
	if (queryParts.length) url += "?" + queryParts.join("&");
	return url;
};
var getBody = (opts) => {
	if (opts.type === "query" && opts.methodOverride !== "POST") return;
	const input = getInput(opts);
	return input !== void 0 ? JSON.stringify(input) : void 0;
};
var jsonHttpRequester = (opts) => {
	return httpRequest(_objectSpread2$1(_objectSpread2$1({}, opts), {}, {
		contentTypeHeader: "application/json",
		getUrl,
		getBody
	}));
};
/**
* Polyfill for DOMException with AbortError name
*/
var AbortError = class extends Error {
	constructor() {
		const name = "AbortError";
		super(name);
		this.name = name;
		this.message = name;
	}
};
/**
* Polyfill for `signal.throwIfAborted()`
*
* @see https://developer.mozilla.org/en-US/docs/Web/API/AbortSignal/throwIfAborted
*/
var throwIfAborted = (signal) => {
	var _signal$throwIfAborte;
	if (!(signal === null || signal === void 0 ? void 0 : signal.aborted)) return;
	(_signal$throwIfAborte = signal.throwIfAborted) === null || _signal$throwIfAborte === void 0 || _signal$throwIfAborte.call(signal);
	if (typeof DOMException !== "undefined") throw new DOMException("AbortError", "AbortError");
	throw new AbortError();
};
async function fetchHTTPResponse(opts) {
	var _opts$methodOverride, _opts$trpcAcceptHeade;
	throwIfAborted(opts.signal);
	const url = opts.getUrl(opts);
	const body = opts.getBody(opts);
	const method = (_opts$methodOverride = opts.methodOverride) !== null && _opts$methodOverride !== void 0 ? _opts$methodOverride : METHOD[opts.type];
	const resolvedHeaders = await (async () => {
		const heads = await opts.headers();
		if (Symbol.iterator in heads) return Object.fromEntries(heads);
		return heads;
	})();
	const headers = _objectSpread2$1(_objectSpread2$1(_objectSpread2$1({}, opts.contentTypeHeader && method !== "GET" ? { "content-type": opts.contentTypeHeader } : {}), opts.trpcAcceptHeader ? { [(_opts$trpcAcceptHeade = opts.trpcAcceptHeaderKey) !== null && _opts$trpcAcceptHeade !== void 0 ? _opts$trpcAcceptHeade : "trpc-accept"]: opts.trpcAcceptHeader } : void 0), resolvedHeaders);
	return getFetch(opts.fetch)(url, {
		method,
		signal: opts.signal,
		body,
		headers
	});
}
async function httpRequest(opts) {
	const meta = {};
	const res = await fetchHTTPResponse(opts);
	meta.response = res;
	const json = await res.json();
	meta.responseJSON = json;
	return {
		json,
		meta
	};
}
// node_modules/@trpc/client/dist/httpBatchLink-BMtWxLJV.mjs
/**
* A function that should never be called unless we messed something up.
*/
var throwFatalError = () => {
	throw new Error("Something went wrong. Please submit an issue at https://github.com/trpc/trpc/issues/new");
};
/**
* Dataloader that's very inspired by https://github.com/graphql/dataloader
* Less configuration, no caching, and allows you to cancel requests
* When cancelling a single fetch the whole batch will be cancelled only when _all_ items are cancelled
*/
function dataLoader(batchLoader) {
	let pendingItems = null;
	let dispatchTimer = null;
	const destroyTimerAndPendingItems = () => {
		clearTimeout(dispatchTimer);
		dispatchTimer = null;
		pendingItems = null;
	};
	/**
	* Iterate through the items and split them into groups based on the `batchLoader`'s validate function
	*/
	function groupItems(items) {
		const groupedItems = [[]];
		let index = 0;
		while (true) {
			const item = items[index];
			if (!item) break;
			const lastGroup = groupedItems[groupedItems.length - 1];
			if (item.aborted) {
				var _item$reject;
				(_item$reject = item.reject) === null || _item$reject === void 0 || _item$reject.call(item, /* @__PURE__ */ new Error("Aborted"));
				index++;
				continue;
			}
			if (batchLoader.validate(lastGroup.concat(item).map((it) => it.key))) {
				lastGroup.push(item);
				index++;
				continue;
			}
			if (lastGroup.length === 0) {
				var _item$reject2;
				(_item$reject2 = item.reject) === null || _item$reject2 === void 0 || _item$reject2.call(item, /* @__PURE__ */ new Error("Input is too big for a single dispatch"));
				index++;
				continue;
			}
			groupedItems.push([]);
		}
		return groupedItems;
	}
	function dispatch() {
		const groupedItems = groupItems(pendingItems);
		destroyTimerAndPendingItems();
		for (const items of groupedItems) {
			if (!items.length) continue;
			const batch = { items };
			for (const item of items) item.batch = batch;
			batchLoader.fetch(batch.items.map((_item) => _item.key)).then(async (result) => {
				await Promise.all(result.map(async (valueOrPromise, index) => {
					const item = batch.items[index];
					try {
						var _item$resolve;
						const value = await Promise.resolve(valueOrPromise);
						(_item$resolve = item.resolve) === null || _item$resolve === void 0 || _item$resolve.call(item, value);
					} catch (cause) {
						var _item$reject3;
						(_item$reject3 = item.reject) === null || _item$reject3 === void 0 || _item$reject3.call(item, cause);
					}
					item.batch = null;
					item.reject = null;
					item.resolve = null;
				}));
				for (const item of batch.items) {
					var _item$reject4;
					(_item$reject4 = item.reject) === null || _item$reject4 === void 0 || _item$reject4.call(item, /* @__PURE__ */ new Error("Missing result"));
					item.batch = null;
				}
			}).catch((cause) => {
				for (const item of batch.items) {
					var _item$reject5;
					(_item$reject5 = item.reject) === null || _item$reject5 === void 0 || _item$reject5.call(item, cause);
					item.batch = null;
				}
			});
		}
	}
	function load(key) {
		var _dispatchTimer;
		const item = {
			aborted: false,
			key,
			batch: null,
			resolve: throwFatalError,
			reject: throwFatalError
		};
		const promise = new Promise((resolve, reject) => {
			var _pendingItems;
			item.reject = reject;
			item.resolve = resolve;
			(_pendingItems = pendingItems) !== null && _pendingItems !== void 0 || (pendingItems = []);
			pendingItems.push(item);
		});
		(_dispatchTimer = dispatchTimer) !== null && _dispatchTimer !== void 0 || (dispatchTimer = setTimeout(dispatch));
		return promise;
	}
	return { load };
}
/**
* @see https://trpc.io/docs/client/links/httpBatchLink
*/
function httpBatchLink(opts) {
	var _opts$maxURLLength, _opts$maxItems;
	const resolvedOpts = resolveHTTPLinkOptions(opts);
	const maxURLLength = (_opts$maxURLLength = opts.maxURLLength) !== null && _opts$maxURLLength !== void 0 ? _opts$maxURLLength : Infinity;
	const maxItems = (_opts$maxItems = opts.maxItems) !== null && _opts$maxItems !== void 0 ? _opts$maxItems : Infinity;
	return () => {
		const batchLoader = (type) => {
			return {
				validate(batchOps) {
					if (maxURLLength === Infinity && maxItems === Infinity) return true;
					if (batchOps.length > maxItems) return false;
					const path = batchOps.map((op) => op.path).join(",");
					const inputs = batchOps.map((op) => op.input);
					return getUrl(_objectSpread2$1(_objectSpread2$1({}, resolvedOpts), {}, {
						type,
						path,
						inputs,
						signal: null
					})).length <= maxURLLength;
				},
				async fetch(batchOps) {
					const path = batchOps.map((op) => op.path).join(",");
					const inputs = batchOps.map((op) => op.input);
					const signal = allAbortSignals(...batchOps.map((op) => op.signal));
					const res = await jsonHttpRequester(_objectSpread2$1(_objectSpread2$1({}, resolvedOpts), {}, {
						path,
						inputs,
						type,
						headers() {
							if (!opts.headers) return {};
							if (typeof opts.headers === "function") return opts.headers({ opList: batchOps });
							return opts.headers;
						},
						signal
					}));
					return (Array.isArray(res.json) ? res.json : batchOps.map(() => res.json)).map((item) => ({
						meta: res.meta,
						json: item
					}));
				}
			};
		};
		const loaders = {
			query: dataLoader(batchLoader("query")),
			mutation: dataLoader(batchLoader("mutation"))
		};
		return ({ op }) => {
			return observable((observer) => {
				/* istanbul ignore if -- @preserve */
				if (op.type === "subscription") throw new Error("Subscriptions are unsupported by `httpLink` - use `httpSubscriptionLink` or `wsLink`");
				const ac = new AbortController();
				const promise = loaders[op.type].load(_objectSpread2$1(_objectSpread2$1({}, op), {}, { signal: raceAbortSignals(op.signal, ac.signal) }));
				let isDone = false;
				let _res = void 0;
				promise.then((res) => {
					isDone = true;
					_res = res;
					const transformed = transformResult(res.json, resolvedOpts.transformer.output);
					if (!transformed.ok) {
						observer.error(TRPCClientError.from(transformed.error, { meta: res.meta }));
						return;
					}
					observer.next({
						context: res.meta,
						result: transformed.result
					});
					observer.complete();
				}).catch((err) => {
					isDone = true;
					observer.error(TRPCClientError.from(err, { meta: _res === null || _res === void 0 ? void 0 : _res.meta }));
				});
				return () => {
					if (!isDone) ac.abort();
				};
			});
		};
	};
}
// node_modules/@trpc/client/dist/wsLink-Bm5LKL6z.mjs
/**
* Get the result of a value or function that returns a value
* It also optionally accepts typesafe arguments for the function
*/
var resultOf = (value, ...args) => {
	return typeof value === "function" ? value(...args) : value;
};
function withResolvers() {
	let resolve;
	let reject;
	return {
		promise: new Promise((res, rej) => {
			resolve = res;
			reject = rej;
		}),
		resolve,
		reject
	};
}
/**
* Resolves a WebSocket URL and optionally appends connection parameters.
*
* If connectionParams are provided, appends 'connectionParams=1' query parameter.
*/
async function prepareUrl(urlOptions) {
	const url = await resultOf(urlOptions.url);
	if (!urlOptions.connectionParams) return url;
	return url + `${url.includes("?") ? "&" : "?"}connectionParams=1`;
}
async function buildConnectionMessage(connectionParams, encoder) {
	const message = {
		method: "connectionParams",
		data: await resultOf(connectionParams)
	};
	return encoder.encode(message);
}
/**
* Opens a WebSocket connection asynchronously and returns a promise
* that resolves when the connection is successfully established.
* The promise rejects if an error occurs during the connection attempt.
*/
function asyncWsOpen(ws) {
	const { promise, resolve, reject } = withResolvers();
	ws.addEventListener("open", () => {
		ws.removeEventListener("error", reject);
		resolve();
	});
	ws.addEventListener("error", reject);
	return promise;
}
/**
* Sets up a periodic ping-pong mechanism to keep the WebSocket connection alive.
*
* - Sends "PING" messages at regular intervals defined by `intervalMs`.
* - If a "PONG" response is not received within the `pongTimeoutMs`, the WebSocket is closed.
* - The ping timer resets upon receiving any message to maintain activity.
* - Automatically starts the ping process when the WebSocket connection is opened.
* - Cleans up timers when the WebSocket is closed.
*
* @param ws - The WebSocket instance to manage.
* @param options - Configuration options for ping-pong intervals and timeouts.
*/
function setupPingInterval(ws, { intervalMs, pongTimeoutMs }) {
	let pingTimeout;
	let pongTimeout;
	function start() {
		pingTimeout = setTimeout(() => {
			ws.send("PING");
			pongTimeout = setTimeout(() => {
				ws.close();
			}, pongTimeoutMs);
		}, intervalMs);
	}
	function reset() {
		clearTimeout(pingTimeout);
		start();
	}
	function pong() {
		clearTimeout(pongTimeout);
		reset();
	}
	ws.addEventListener("open", start);
	ws.addEventListener("message", ({ data }) => {
		clearTimeout(pingTimeout);
		start();
		if (data === "PONG") pong();
	});
	ws.addEventListener("close", () => {
		clearTimeout(pingTimeout);
		clearTimeout(pongTimeout);
	});
}
_defineProperty$1(class WsConnection {
	constructor(opts) {
		var _opts$WebSocketPonyfi;
		_defineProperty$1(this, "id", ++WsConnection.connectCount);
		_defineProperty$1(this, "WebSocketPonyfill", void 0);
		_defineProperty$1(this, "urlOptions", void 0);
		_defineProperty$1(this, "keepAliveOpts", void 0);
		_defineProperty$1(this, "encoder", void 0);
		_defineProperty$1(this, "wsObservable", behaviorSubject(null));
		_defineProperty$1(this, "openPromise", null);
		this.WebSocketPonyfill = (_opts$WebSocketPonyfi = opts.WebSocketPonyfill) !== null && _opts$WebSocketPonyfi !== void 0 ? _opts$WebSocketPonyfi : WebSocket;
		if (!this.WebSocketPonyfill) throw new Error("No WebSocket implementation found - you probably don't want to use this on the server, but if you do you need to pass a `WebSocket`-ponyfill");
		this.urlOptions = opts.urlOptions;
		this.keepAliveOpts = opts.keepAlive;
		this.encoder = opts.encoder;
	}
	get ws() {
		return this.wsObservable.get();
	}
	set ws(ws) {
		this.wsObservable.next(ws);
	}
	/**
	* Checks if the WebSocket connection is open and ready to communicate.
	*/
	isOpen() {
		return !!this.ws && this.ws.readyState === this.WebSocketPonyfill.OPEN && !this.openPromise;
	}
	/**
	* Checks if the WebSocket connection is closed or in the process of closing.
	*/
	isClosed() {
		return !!this.ws && (this.ws.readyState === this.WebSocketPonyfill.CLOSING || this.ws.readyState === this.WebSocketPonyfill.CLOSED);
	}
	async open() {
		if (this.openPromise) return this.openPromise;
		this.id = ++WsConnection.connectCount;
		const wsPromise = prepareUrl(this.urlOptions).then((url) => new this.WebSocketPonyfill(url));
		this.openPromise = wsPromise.then(async (ws) => {
			this.ws = ws;
			ws.binaryType = "arraybuffer";
			ws.addEventListener("message", function({ data }) {
				if (data === "PING") this.send("PONG");
			});
			if (this.keepAliveOpts.enabled) setupPingInterval(ws, this.keepAliveOpts);
			ws.addEventListener("close", () => {
				if (this.ws === ws) this.ws = null;
			});
			await asyncWsOpen(ws);
			if (this.urlOptions.connectionParams) ws.send(await buildConnectionMessage(this.urlOptions.connectionParams, this.encoder));
		});
		try {
			await this.openPromise;
		} finally {
			this.openPromise = null;
		}
	}
	/**
	* Closes the WebSocket connection gracefully.
	* Waits for any ongoing open operation to complete before closing.
	*/
	async close() {
		try {
			await this.openPromise;
		} finally {
			var _this$ws;
			(_this$ws = this.ws) === null || _this$ws === void 0 || _this$ws.close();
		}
	}
}, "connectCount", 0);
// node_modules/@trpc/client/dist/index.mjs
var TRPCUntypedClient = class {
	constructor(opts) {
		_defineProperty$1(this, "links", void 0);
		_defineProperty$1(this, "runtime", void 0);
		_defineProperty$1(this, "requestId", void 0);
		this.requestId = 0;
		this.runtime = {};
		this.links = opts.links.map((link) => link(this.runtime));
	}
	$request(opts) {
		var _opts$context;
		return createChain({
			links: this.links,
			op: _objectSpread2$1(_objectSpread2$1({}, opts), {}, {
				context: (_opts$context = opts.context) !== null && _opts$context !== void 0 ? _opts$context : {},
				id: ++this.requestId
			})
		}).pipe(share());
	}
	async requestAsPromise(opts) {
		try {
			return (await observableToPromise(this.$request(opts))).result.data;
		} catch (err) {
			throw TRPCClientError.from(err);
		}
	}
	query(path, input, opts) {
		return this.requestAsPromise({
			type: "query",
			path,
			input,
			context: opts === null || opts === void 0 ? void 0 : opts.context,
			signal: opts === null || opts === void 0 ? void 0 : opts.signal
		});
	}
	mutation(path, input, opts) {
		return this.requestAsPromise({
			type: "mutation",
			path,
			input,
			context: opts === null || opts === void 0 ? void 0 : opts.context,
			signal: opts === null || opts === void 0 ? void 0 : opts.signal
		});
	}
	subscription(path, input, opts) {
		return this.$request({
			type: "subscription",
			path,
			input,
			context: opts.context,
			signal: opts.signal
		}).subscribe({
			next(envelope) {
				switch (envelope.result.type) {
					case "state":
						var _opts$onConnectionSta;
						(_opts$onConnectionSta = opts.onConnectionStateChange) === null || _opts$onConnectionSta === void 0 || _opts$onConnectionSta.call(opts, envelope.result);
						break;
					case "started":
						var _opts$onStarted;
						(_opts$onStarted = opts.onStarted) === null || _opts$onStarted === void 0 || _opts$onStarted.call(opts, { context: envelope.context });
						break;
					case "stopped":
						var _opts$onStopped;
						(_opts$onStopped = opts.onStopped) === null || _opts$onStopped === void 0 || _opts$onStopped.call(opts);
						break;
					case "data":
					case void 0:
						var _opts$onData;
						(_opts$onData = opts.onData) === null || _opts$onData === void 0 || _opts$onData.call(opts, envelope.result.data);
				}
			},
			error(err) {
				var _opts$onError;
				(_opts$onError = opts.onError) === null || _opts$onError === void 0 || _opts$onError.call(opts, err);
			},
			complete() {
				var _opts$onComplete;
				(_opts$onComplete = opts.onComplete) === null || _opts$onComplete === void 0 || _opts$onComplete.call(opts);
			}
		});
	}
};
function createTRPCUntypedClient(opts) {
	return new TRPCUntypedClient(opts);
}
/* istanbul ignore file -- @preserve */
function _OverloadYield(e, d) {
	this.v = e, this.k = d;
}
function AsyncGenerator(e) {
	var r, t;
	function resume(r, t) {
		try {
			var n = e[r](t), o = n.value, u = o instanceof _OverloadYield;
			Promise.resolve(u ? o.v : o).then(function(t) {
				if (u) {
					var i = "return" === r ? "return" : "next";
					if (!o.k || t.done) return resume(i, t);
					t = e[i](t).value;
				}
				settle(n.done ? "return" : "normal", t);
			}, function(e) {
				resume("throw", e);
			});
		} catch (e) {
			settle("throw", e);
		}
	}
	function settle(e, n) {
		switch (e) {
			case "return":
				r.resolve({
					value: n,
					done: !0
				});
				break;
			case "throw":
				r.reject(n);
				break;
			default: r.resolve({
				value: n,
				done: !1
			});
		}
		(r = r.next) ? resume(r.key, r.arg) : t = null;
	}
	this._invoke = function(e, n) {
		return new Promise(function(o, u) {
			var i = {
				key: e,
				arg: n,
				resolve: o,
				reject: u,
				next: null
			};
			t ? t = t.next = i : (r = t = i, resume(e, n));
		});
	}, "function" != typeof e["return"] && (this["return"] = void 0);
}
AsyncGenerator.prototype["function" == typeof Symbol && Symbol.asyncIterator || "@@asyncIterator"] = function() {
	return this;
}, AsyncGenerator.prototype.next = function(e) {
	return this._invoke("next", e);
}, AsyncGenerator.prototype["throw"] = function(e) {
	return this._invoke("throw", e);
}, AsyncGenerator.prototype["return"] = function(e) {
	return this._invoke("return", e);
};
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
/** Sends calls of one kind as one batch. Always by POST, since proxies log the inputs in URLs. */
async function sendRequest({ url, fetch: send = fetch }, calls, headers, signal) {
	const [first] = calls;
	if (!first) return { outcomes: [] };
	const { kind } = first;
	let response;
	const client = createTRPCUntypedClient({ links: [httpBatchLink({
		url: `${url.replace(/\/+$/, "")}/trpc`,
		maxItems: calls.length,
		methodOverride: "POST",
		headers,
		transformer,
		fetch: async (address, request) => {
			response = await send(`${address}&kind=${kind}`, request);
			return requireJson(response);
		}
	})] });
	const outcomes = calls.map((call) => client[kind](call.path, call.input, { signal }).then((result) => ({ result }), (thrown) => ({ error: toDeckhandError(thrown, call) })));
	return {
		outcomes: await Promise.all(outcomes),
		quota: response && readQuota(response)
	};
}
/** Inputs are already serialized: the caller may have changed the object since the call. */
var transformer = {
	input: {
		serialize: ({ text }) => JSON.parse(text),
		deserialize: SuperJSON.deserialize
	},
	output: SuperJSON
};
/** Undefined if a proxy removed the headers. */
function readQuota({ headers }) {
	const [limit, remaining] = ["limit", "remaining"].map((name) => headers.get(`x-ratelimit-${name}`));
	return limit && remaining ? {
		limit: Number(limit),
		remaining: Number(remaining)
	} : void 0;
}
// client/session.ts
function openSession({ token, signIn, onSignIn }, authenticate) {
	let renewed;
	const current = async () => checkToken(renewed ?? await (typeof token === "function" ? runCallback("token", token) : token));
	if (!signIn) return {
		token: current,
		renew: void 0
	};
	const { email, password, code, is_recovery = false } = signIn;
	let renewal;
	async function renew() {
		const isCodeUnused = typeof code === "string" && renewed === void 0;
		try {
			await signInWith(isCodeUnused ? code : void 0);
		} catch (error) {
			const newCode = typeof code === "function" && isCodeRequired(error) && await runCallback("signIn.code", code);
			if (!newCode) throw error;
			await signInWith(newCode);
		}
	}
	/** The earlier token identifies a remembered device, which needs no code. */
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
		await runCallback("onSignIn", () => onSignIn?.(user));
	}
	return {
		token: current,
		renew: () => {
			renewal ??= renew().finally(() => {
				renewal = void 0;
			});
			return renewal;
		}
	};
}
/** Signs in before the first call, and again after a 401; a second 401 is thrown. */
async function withSignIn({ token, renew }, call, send) {
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
/** Checked here, since the error of `fetch` would show an invalid token in logs. */
function checkToken(token) {
	if (token === void 0 || /^[\x20-\x7e]*$/.test(token.trimEnd())) return token;
	throw new DeckhandError("token must have only printable ASCII characters.");
}
async function runCallback(name, callback) {
	try {
		return await callback();
	} catch (error) {
		throw callbackError(name, error);
	}
}
var isCodeRequired = (error) => isRefusal(error) && error.reason === "code_required";
// client/trace.ts
function traceHeaders(traceparent) {
	if (!traceparent) return activeTrace();
	try {
		const given = traceparent();
		return given ? { traceparent: given } : {};
	} catch (error) {
		throw callbackError("traceparent", error);
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
	checkOptions(options);
	const { url, fetch, retries = 3, maxInFlight = 100, traceparent } = options;
	const session = openSession(options, (input) => client.auth.authenticate.mutate(input));
	const lineOf = (largestBatch, tokenOf) => makeLine({
		largestBatch,
		maxInFlight,
		retries,
		send: (calls, signal) => {
			const [first] = calls;
			const headers = async () => {
				const token = await tokenOf();
				return {
					...first?.trace,
					...token && { authorization: `Bearer ${token}` },
					...projectHeader(first),
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
			const key = kind === "mutation" && !isSignIn$1({ path }) ? validKey(idempotencyKey ?? newId()) : void 0;
			signal?.throwIfAborted();
			return await withTimeOut(options, {
				path,
				kind,
				input,
				projectId,
				idempotencyKey: key,
				trace: traceHeaders(traceparent)
			}, (call) => withSignIn(session, call, () => (isSignIn$1(call) ? signInLine : line)(call)));
		} catch (error) {
			signal?.throwIfAborted();
			throw withCallerStack(toDeckhandError(error), caller);
		}
	};
	const client = withDefaults(options, send);
	return client;
}
/** All calls of a batch have the same project. */
function projectHeader(first) {
	return first?.projectId === void 0 ? {} : { "x-project-id": String(first.projectId) };
}
/** Sets the request id here, so that the service's log can be searched for a call without a response. */
function requestIdHeader(calls) {
	const id = newId();
	for (const call of calls) call.requestId = id;
	return { "x-request-id": id };
}
export { DeckhandError, createClient, isRefusal };
