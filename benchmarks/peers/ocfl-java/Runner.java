import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.ocfl.core.extension.OcflExtensionConfig;
import io.ocfl.core.extension.storage.layout.FlatLayoutExtension;
import io.ocfl.core.extension.storage.layout.FlatOmitPrefixLayoutExtension;
import io.ocfl.core.extension.storage.layout.HashedNTupleIdEncapsulationLayoutExtension;
import io.ocfl.core.extension.storage.layout.HashedNTupleLayoutExtension;
import io.ocfl.core.extension.storage.layout.NTupleOmitPrefixStorageLayoutExtension;
import io.ocfl.core.extension.storage.layout.OcflStorageLayoutExtension;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Times a layout of ocfl-java on a file of identifiers: {@code Runner CONFIG IDENTIFIERS PATHS ROUNDS}.
 *
 * <p>Files hold NUL-delimited UTF-8; an identifier that ocfl-java refuses gets an empty path. Prints one JSON object with
 * the seconds of each round, of the mapping loop alone; the first rounds are those of a cold virtual machine.
 */
public final class Runner {

    private static OcflStorageLayoutExtension layout(String name) {
        switch (name.substring(0, 4)) {
            case "0002":
                return new FlatLayoutExtension();
            case "0003":
                return new HashedNTupleIdEncapsulationLayoutExtension();
            case "0004":
                return new HashedNTupleLayoutExtension();
            case "0006":
                return new FlatOmitPrefixLayoutExtension();
            case "0007":
                return new NTupleOmitPrefixStorageLayoutExtension();
            default:
                throw new IllegalArgumentException("ocfl-java has no layout " + name);
        }
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper().disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
        JsonNode config = json.readTree(Files.readAllBytes(Path.of(arguments[0])));
        OcflStorageLayoutExtension layout = layout(config.get("extensionName").asText());
        layout.init((OcflExtensionConfig) json.treeToValue(config, layout.getExtensionConfigClass()));

        String content = Files.readString(Path.of(arguments[1]));
        List<String> ids = new ArrayList<>();
        for (int start = 0, end; (end = content.indexOf('\0', start)) >= 0; start = end + 1) {
            ids.add(content.substring(start, end));
        }

        int rounds = Integer.parseInt(arguments[3]);
        List<Double> seconds = new ArrayList<>();
        List<String> paths = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            paths = new ArrayList<>(ids.size());
            long start = System.nanoTime();
            for (String id : ids) {
                String path;
                try {
                    path = layout.mapObjectId(id);
                } catch (RuntimeException refused) {
                    path = "";
                }
                paths.add(path);
            }
            seconds.add((System.nanoTime() - start) / 1e9);
        }

        ByteArrayOutputStream output = new ByteArrayOutputStream();
        for (String path : paths) {
            output.write(path.getBytes(StandardCharsets.UTF_8));
            output.write(0);
        }
        Files.write(Path.of(arguments[2]), output.toByteArray());
        System.out.println(
                "{\"seconds\": " + seconds + ", \"runtime\": \"Java " + System.getProperty("java.version") + "\"}");
    }
}
