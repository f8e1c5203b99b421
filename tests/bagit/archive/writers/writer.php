<?php
// Packs the directory bag below a directory with PHP's ZipArchive and PharData.
[, $mode, $source, $out] = $argv;
if ($mode === 'phar') {
    $packed = new PharData($out);
    $packed->buildFromDirectory($source);
    exit;
}
$zip = new ZipArchive();
$zip->open($out, ZipArchive::CREATE);
$files = new RecursiveIteratorIterator(
    new RecursiveDirectoryIterator($source, FilesystemIterator::SKIP_DOTS),
    RecursiveIteratorIterator::SELF_FIRST
);
foreach ($files as $path) {
    $name = substr($path, strlen($source) + 1);
    if ($path->isDir()) {
        $zip->addEmptyDir($name);
    } elseif ($mode === 'zip-string') {
        $zip->addFromString($name, file_get_contents($path));
    } else {
        $zip->addFile($path, $name);
    }
}
$zip->close();
