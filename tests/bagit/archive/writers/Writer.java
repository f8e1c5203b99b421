import java.io.BufferedOutputStream;
import java.io.File;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import net.lingala.zip4j.ZipFile;
import net.lingala.zip4j.model.ZipParameters;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.zip.Zip64Mode;
import org.apache.commons.compress.archivers.zip.ZipArchiveEntry;
import org.apache.commons.compress.archivers.zip.ZipArchiveOutputStream;

/** Packs the directory bag below a directory with the JDK, Commons Compress and Zip4j. */
class Writer {
    private final Path source;
    private final Path out;
    private final List<Path> paths;

    Writer(Path source, Path out) throws Exception {
        this.source = source;
        this.out = out;
        try (Stream<Path> found = Files.walk(source.resolve("bag"))) {
            paths = found.sorted().collect(Collectors.toList());
        }
    }

    String name(Path path) {
        return source.relativize(path) + (Files.isDirectory(path) ? "/" : "");
    }

    OutputStream stream() throws Exception {
        return new BufferedOutputStream(Files.newOutputStream(out));
    }

    void jdk(boolean stored) throws Exception {
        try (ZipOutputStream zip = new ZipOutputStream(stream())) {
            for (Path path : paths) {
                ZipEntry entry = new ZipEntry(name(path));
                if (stored) {
                    byte[] data = Files.isDirectory(path) ? new byte[0] : Files.readAllBytes(path);
                    CRC32 crc = new CRC32();
                    crc.update(data);
                    entry.setMethod(ZipEntry.STORED);
                    entry.setSize(data.length);
                    entry.setCrc(crc.getValue());
                }
                zip.putNextEntry(entry);
                if (!Files.isDirectory(path)) Files.copy(path, zip);
                zip.closeEntry();
            }
        }
    }

    /** As a service that copies the sizes of another zip file's entries. */
    void service() throws Exception {
        try (ZipOutputStream zip = new ZipOutputStream(stream())) {
            for (Path path : paths) {
                if (Files.isDirectory(path)) continue;
                ZipEntry entry = new ZipEntry(name(path));
                entry.setSize(Files.size(path));
                entry.setLastModifiedTime(Files.getLastModifiedTime(path));
                zip.putNextEntry(entry);
                Files.copy(path, zip);
                zip.closeEntry();
            }
        }
    }

    void commonsZip(ZipArchiveOutputStream zip, boolean wide) throws Exception {
        if (wide) zip.setUseZip64(Zip64Mode.Always);
        for (Path path : paths) {
            ZipArchiveEntry entry = new ZipArchiveEntry(path.toFile(), name(path));
            entry.setUnixMode(Files.isDirectory(path) ? 040755 : 0100644);
            zip.putArchiveEntry(entry);
            if (!Files.isDirectory(path)) Files.copy(path, zip);
            zip.closeArchiveEntry();
        }
        zip.close();
    }

    void commonsTar(int longFile, int bigNumber) throws Exception {
        try (TarArchiveOutputStream tar = new TarArchiveOutputStream(stream(), "UTF-8")) {
            tar.setLongFileMode(longFile);
            tar.setBigNumberMode(bigNumber);
            tar.setAddPaxHeadersForNonAsciiNames(bigNumber == TarArchiveOutputStream.BIGNUMBER_POSIX);
            for (Path path : paths) {
                TarArchiveEntry entry = new TarArchiveEntry(path.toFile(), name(path));
                tar.putArchiveEntry(entry);
                if (!Files.isDirectory(path)) Files.copy(path, tar);
                tar.closeArchiveEntry();
            }
        }
    }

    void zip4jStream() throws Exception {
        try (net.lingala.zip4j.io.outputstream.ZipOutputStream zip =
                new net.lingala.zip4j.io.outputstream.ZipOutputStream(stream())) {
            for (Path path : paths) {
                if (Files.isDirectory(path)) continue;
                ZipParameters parameters = new ZipParameters();
                parameters.setFileNameInZip(name(path));
                zip.putNextEntry(parameters);
                Files.copy(path, zip);
                zip.closeEntry();
            }
        }
    }

    public static void main(String[] words) throws Exception {
        Writer writer = new Writer(Path.of(words[1]), Path.of(words[2]));
        switch (words[0]) {
            case "jdk": writer.jdk(false); break;
            case "jdk-stored": writer.jdk(true); break;
            case "jdk-sizes": writer.service(); break;
            case "commons-zip": writer.commonsZip(new ZipArchiveOutputStream(writer.out.toFile()), false); break;
            case "commons-zip-stream": writer.commonsZip(new ZipArchiveOutputStream(writer.stream()), false); break;
            case "commons-zip-64": writer.commonsZip(new ZipArchiveOutputStream(writer.out.toFile()), true); break;
            case "commons-zip-stream-64": writer.commonsZip(new ZipArchiveOutputStream(writer.stream()), true); break;
            case "commons-tar":
                writer.commonsTar(TarArchiveOutputStream.LONGFILE_POSIX, TarArchiveOutputStream.BIGNUMBER_POSIX);
                break;
            case "commons-tar-gnu":
                writer.commonsTar(TarArchiveOutputStream.LONGFILE_GNU, TarArchiveOutputStream.BIGNUMBER_STAR);
                break;
            case "zip4j":
                try (ZipFile zip = new ZipFile(writer.out.toFile())) {
                    zip.addFolder(new File(writer.source.toFile(), "bag"));
                }
                break;
            case "zip4j-stream": writer.zip4jStream(); break;
            default: throw new IllegalArgumentException(words[0]);
        }
    }
}
