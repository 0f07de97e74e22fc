// Keeps the page's own files, so that it opens at once and can be installed. What the server
// answers to requests is never kept: it is read with a key, and it changes.
const CACHE = "caal-" + "VERSION";
const FILES = [/* FILES */];

addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(FILES))
      .then(() => self.skipWaiting()),
  );
});

addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) =>
        Promise.all(
          names
            .filter((name) => name.startsWith("caal-") && name !== CACHE)
            .map((name) => caches.delete(name)),
        ),
      )
      .then(() => self.clients.claim()),
  );
});

addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (!FILES.includes(url.pathname) || request.headers.has("Authorization")) return;
  if (url.pathname.startsWith("/assets/")) {
    // Their names change with their contents.
    event.respondWith(caches.match(url.pathname).then((kept) => kept || fetch(request)));
    return;
  }
  event.respondWith(
    fetch(request).catch(async () => (await caches.match(url.pathname)) || Response.error()),
  );
});
