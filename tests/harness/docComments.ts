import ts from 'typescript-5';

/** The exported names of these modules, and members of them, that have no doc comment: `CardsCreateInput.title`. */
export function undocumented(files: string[]): string[] {
  const program = ts.createProgram(files, { module: ts.ModuleKind.NodeNext, skipLibCheck: true, types: [] });
  const checker = program.getTypeChecker();
  const found = files.flatMap((file) => {
    const symbol = checker.getSymbolAtLocation(program.getSourceFile(file)!);
    return checker.getExportsOfModule(symbol!).flatMap((exported) => {
      const target = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      return target.getDeclarations()!.flatMap((declaration) => undocumentedIn(declaration, exported.name));
    });
  });
  return [...new Set(found)];
}

function undocumentedIn(declaration: ts.Node, path: string): string[] {
  const own = hasComment(declaration) ? [] : [path];
  return [
    ...own,
    ...membersOf(declaration).flatMap((member) => undocumentedIn(member, `${path}.${member.name!.getText()}`)),
  ];
}

const hasComment = (node: ts.Node) =>
  ts.getJSDocCommentsAndTags(node).some((part) => ts.isJSDoc(part) && ts.getTextOfJSDocComment(part.comment)?.trim());

/** The named members of a declaration, also inside of arrays, unions and other types that it is made of. */
function membersOf(node: ts.Node): (ts.TypeElement | ts.ClassElement)[] {
  const members: (ts.TypeElement | ts.ClassElement)[] = [];
  node.forEachChild(function visit(child) {
    if (isNamedMember(child)) members.push(child);
    else child.forEachChild(visit);
  });
  return members;
}

const isNamedMember = (node: ts.Node): node is ts.TypeElement | ts.ClassElement =>
  (ts.isTypeElement(node) || ts.isClassElement(node)) && node.name !== undefined;

/** The doc comments that an editor shows for expressions of a program, such as `client.cards.create`. */
export function commentsAt(file: string): (expression: string) => string {
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    strict: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const comments = new Map<string, string>();
  program.getSourceFile(file)!.forEachChild(function visit(node) {
    if (ts.isPropertyAccessExpression(node)) {
      const comment = checker.getSymbolAtLocation(node.name)?.getDocumentationComment(checker);
      comments.set(node.getText(), ts.displayPartsToString(comment));
    }
    node.forEachChild(visit);
  });
  return (expression) => comments.get(expression) ?? '';
}
