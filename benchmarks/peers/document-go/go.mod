module pressmark.example/peers/document-go

go 1.22
