const params = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

const slug = params.title
  .normalize("NFKD")
  .replace(/[\u0300-\u036f]/g, "")
  .toLowerCase()
  .replace(/[^a-z0-9]+/g, "-")
  .replace(/^-+|-+$/g, "");

process.stdout.write(JSON.stringify({ slug }));
