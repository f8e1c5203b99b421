// Packs the directory bag below a directory with packages of Node.js.
import fs from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";

const [mode, source, out] = process.argv.slice(2);

/** Lists the names below the source, directories with a slash. */
function* names(name = "bag") {
  yield `${name}/`;
  for (const entry of fs.readdirSync(path.join(source, name), { withFileTypes: true })) {
    if (entry.isDirectory()) yield* names(`${name}/${entry.name}`);
    else yield `${name}/${entry.name}`;
  }
}
const read = (name) => fs.readFileSync(path.join(source, name));
const to = () => fs.createWriteStream(out);

const writers = {
  async "tar-stream"() {
    const { default: tar } = await import("tar-stream");
    const pack = tar.pack();
    for (const name of names()) {
      if (name.endsWith("/")) pack.entry({ name, type: "directory" });
      else pack.entry({ name }, read(name));
    }
    pack.finalize();
    await pipeline(pack, to());
  },
  async tar() {
    const tar = await import("tar");
    await tar.create({ file: out, cwd: source }, ["bag"]);
  },
  async "tar-portable"() {
    const tar = await import("tar");
    await tar.create({ file: out, cwd: source, portable: true }, ["bag"]);
  },
  archiver: (format = "zip", options = {}) => async () => {
    const { default: archiver } = await import("archiver");
    const archive = archiver(format, options);
    archive.directory(path.join(source, "bag"), "bag");
    archive.finalize();
    await pipeline(archive, to());
  },
  async "archiver-append"() {
    const { default: archiver } = await import("archiver");
    const archive = archiver("zip");
    for (const name of names()) {
      if (!name.endsWith("/")) archive.append(fs.createReadStream(path.join(source, name)), { name });
    }
    archive.finalize();
    await pipeline(archive, to());
  },
  yazl: (stream) => async () => {
    const { default: yazl } = await import("yazl");
    const zip = new yazl.ZipFile();
    for (const name of names()) {
      if (name.endsWith("/")) zip.addEmptyDirectory(name);
      else if (stream) zip.addReadStream(fs.createReadStream(path.join(source, name)), name);
      else zip.addFile(path.join(source, name), name);
    }
    zip.end();
    await pipeline(zip.outputStream, to());
  },
  jszip: (streamFiles, platform) => async () => {
    const { default: JSZip } = await import("jszip");
    const zip = new JSZip();
    for (const name of names()) {
      if (!name.endsWith("/")) zip.file(name, read(name));
    }
    const options = { type: "nodebuffer", compression: "DEFLATE", streamFiles, platform };
    await pipeline(zip.generateNodeStream(options), to());
  },
  async "adm-zip"() {
    const { default: AdmZip } = await import("adm-zip");
    const zip = new AdmZip();
    for (const name of names()) {
      if (!name.endsWith("/")) zip.addFile(name, read(name));
    }
    zip.writeZip(out);
  },
  async "adm-zip-folder"() {
    const { default: AdmZip } = await import("adm-zip");
    const zip = new AdmZip();
    zip.addLocalFolder(path.join(source, "bag"), "bag");
    zip.writeZip(out);
  },
};
writers["archiver-tar"] = writers.archiver("tar");
writers["archiver-zip64"] = writers.archiver("zip", { forceZip64: true });
writers.archiver = writers.archiver();
writers["yazl-stream"] = writers.yazl(true);
writers.yazl = writers.yazl(false);
writers["jszip-stream"] = writers.jszip(true, "UNIX");
writers["jszip-dos"] = writers.jszip(false, "DOS");
writers.jszip = writers.jszip(false, "UNIX");
await writers[mode]();
