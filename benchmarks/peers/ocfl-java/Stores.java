import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.ocfl.api.MutableOcflRepository;
import io.ocfl.api.OcflObjectUpdater;
import io.ocfl.api.exception.NotFoundException;
import io.ocfl.api.model.DigestAlgorithm;
import io.ocfl.api.model.ObjectVersionId;
import io.ocfl.api.model.OcflVersion;
import io.ocfl.api.model.ValidationIssue;
import io.ocfl.api.model.ValidationResults;
import io.ocfl.api.model.VersionInfo;
import io.ocfl.core.OcflRepositoryBuilder;
import io.ocfl.core.extension.OcflExtensionConfig;
import io.ocfl.core.extension.OcflExtensionRegistry;
import io.ocfl.core.extension.UnsupportedExtensionBehavior;
import io.ocfl.core.extension.storage.layout.OcflStorageLayoutExtension;
import io.ocfl.core.validation.Validator;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/**
 * Works on OCFL storage roots with ocfl-java: one request a line of standard input, one answer a line of standard output,
 * all in JSON. See {@code ../ocfl_stores.py}.
 */
public final class Stores {

    private static final ObjectMapper JSON =
            new ObjectMapper().disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    private static String text(JsonNode request, String key) {
        return request.path(key).asText();
    }

    private static OcflExtensionConfig layout(JsonNode config) throws Exception {
        OcflStorageLayoutExtension layout = OcflExtensionRegistry.<OcflStorageLayoutExtension>lookup(
                        text(config, "extensionName"))
                .orElseThrow(() -> new IllegalArgumentException("layout unknown to ocfl-java"));
        return (OcflExtensionConfig) JSON.treeToValue(config, layout.getExtensionConfigClass());
    }

    private static MutableOcflRepository open(JsonNode request) throws Exception {
        Path root = Path.of(text(request, "root"));
        // Staging has to be on the file system of the root, and outside of it.
        Path work = root.resolveSibling(root.getFileName() + "-ocfl-java");
        Files.createDirectories(root);
        Files.createDirectories(work);
        // Other programs have extensions of their own in the root.
        OcflRepositoryBuilder builder = new OcflRepositoryBuilder()
                .storage(storage -> storage.fileSystem(root))
                .workDir(work)
                .unsupportedExtensionBehavior(UnsupportedExtensionBehavior.WARN);
        if (request.hasNonNull("layout")) {
            builder.defaultLayoutConfig(layout(request.get("layout")));
        }
        builder.ocflConfig(config -> {
            if (request.hasNonNull("version")) {
                config.setOcflVersion(OcflVersion.fromOcflVersionString("ocfl_" + text(request, "version")));
            }
            if (request.hasNonNull("algorithm")) {
                config.setDefaultDigestAlgorithm(DigestAlgorithm.fromOcflName(text(request, "algorithm")));
            }
            if (request.hasNonNull("content")) {
                config.setDefaultContentDirectory(text(request, "content"));
            }
            config.setDefaultZeroPaddingWidth(request.path("padding").asInt());
        });
        return builder.buildMutable();
    }

    private static String hex(String algorithm, Path file) throws Exception {
        byte[] digest =
                DigestAlgorithm.fromOcflName(algorithm).getMessageDigest().digest(Files.readAllBytes(file));
        return String.format("%0" + 2 * digest.length + "x", new BigInteger(1, digest));
    }

    /** Makes the source directory the state of the new version. */
    private static void replace(OcflObjectUpdater updater, JsonNode request) {
        Path source = Path.of(text(request, "source"));
        updater.clearVersionState().addPath(source);
        try (Stream<Path> files = Files.walk(source)) {
            for (Path file : files.filter(Files::isRegularFile).collect(Collectors.toList())) {
                for (JsonNode algorithm : request.path("fixity")) {
                    updater.addFileFixity(
                            source.relativize(file).toString(),
                            DigestAlgorithm.fromOcflName(algorithm.asText()),
                            hex(algorithm.asText(), file));
                }
            }
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static VersionInfo provenance(JsonNode request) {
        JsonNode user = request.path("user");
        return new VersionInfo().setMessage(text(request, "message")).setUser(text(user, "name"), text(user, "address"));
    }

    private static List<String> texts(List<ValidationIssue> issues) {
        return issues.stream()
                .map(issue -> issue.getCode() + ": " + issue.getMessage())
                .collect(Collectors.toList());
    }

    private static Map<String, Object> found(ValidationResults results) {
        return Map.of("errors", texts(results.getErrors()), "warnings", texts(results.getWarnings()));
    }

    /** Validates objects by their paths, which needs no layout, and by their identifiers, which does. */
    private static Map<String, Object> validate(JsonNode request) throws Exception {
        Path root = Path.of(text(request, "root"));
        Map<String, Object> answer = new LinkedHashMap<>();
        for (JsonNode path : request.path("paths")) {
            answer.put(path.asText(), found(Validator.validateObject(root.resolve(path.asText()), true)));
        }
        if (!request.path("ids").isEmpty()) {
            MutableOcflRepository repository = open(request);
            for (JsonNode id : request.path("ids")) {
                try {
                    answer.put(id.asText(), found(repository.validateObject(id.asText(), true)));
                } catch (NotFoundException missing) {
                    answer.put(id.asText(), Map.of("errors", List.of(missing.toString()), "warnings", List.of()));
                }
            }
            repository.close();
        }
        return answer;
    }

    private static Object answer(JsonNode request) throws Exception {
        if (text(request, "do").equals("validate")) {
            return validate(request);
        }
        MutableOcflRepository repository = open(request);
        String id = text(request, "id");
        try {
            switch (text(request, "do")) {
                case "create":
                    break;
                case "put":
                    repository.updateObject(
                            ObjectVersionId.head(id), provenance(request), updater -> replace(updater, request));
                    break;
                case "stage":
                    repository.stageChanges(
                            ObjectVersionId.head(id), provenance(request), updater -> replace(updater, request));
                    break;
                case "commit":
                    repository.commitStagedChanges(id, provenance(request));
                    break;
                default:
                    throw new IllegalArgumentException("ocfl-java cannot " + text(request, "do"));
            }
        } finally {
            repository.close();
        }
        return List.of();
    }

    public static void main(String[] arguments) throws Exception {
        // Java itself has no blake2b.
        Security.addProvider(new BouncyCastleProvider());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = lines.readLine()) != null; ) {
            Map<String, Object> said = new LinkedHashMap<>();
            try {
                said.put("answer", answer(JSON.readTree(line)));
            } catch (Exception problem) {
                said.put("error", problem.toString());
            }
            answers.println(JSON.writeValueAsString(said));
        }
    }
}
